"""Random lives by the hundred: every answer on the way, and every table another engine reads, is a plain count."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lives.living import live
from tests.lives.telling import tell

LIVES = 6


@pytest.mark.seeds(1, 61)
def test_many_lives(seed: int, record_property: Any) -> None:
    """Lives ``100 * seed`` and those after it; `python -m tests.lives --seed` lives one again."""
    tell(record_property, live(range(100 * seed, 100 * seed + LIVES)))
