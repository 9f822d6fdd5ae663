"""A pipeline that asks another system is not forked: two would write answers to one topic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.asking.payments import SHOP, compiled

from seamline.lake.publish.forking import require_new
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import BadRange

PLAIN = compile_pipeline(replace(SHOP, name="plain", derive=()))


@pytest.mark.parametrize(("one", "other", "who"), [(compiled(), PLAIN, "shop"), (PLAIN, compiled(), "shop")])
def test_whoever_asks_is_not_forked(tmp_path: Path, one, other, who):
    """Neither from it, nor into it; the reason is not that topics differ."""
    with pytest.raises(BadRange, match=rf"{who} asks another system \(scored\)") as raised:
        require_new(one, other, Layout(tmp_path, other.name))
    assert "from the beginning of the topics" in str(raised.value)
