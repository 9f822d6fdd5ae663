"""What the documents show must work as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from seamline import Pipeline
from seamline.model.compiled import compile_pipeline

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = BLOCK.findall((DOCS / "definition.md").read_text())


@pytest.mark.parametrize("at", range(len(EXAMPLES)))
def test_an_example_compiles(at: int) -> None:
    """The first thing a newcomer does is copy it."""
    names: dict[str, Any] = {}
    for example in EXAMPLES[: at + 1]:
        exec(compile(example, "definition.md", "exec"), names)
    made = [value for value in names.values() if isinstance(value, Pipeline)]
    assert made
    for each in made:
        assert compile_pipeline(each).views
