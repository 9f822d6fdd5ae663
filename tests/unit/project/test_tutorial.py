"""The pages that tell a story are run as they stand.

``python -m tests.unit.project.test_tutorial`` writes anew what their blocks print.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.project import told_page
from tests.unit.project.told_page import ROOT, list_blocks, show_outputs

PAGES = {name: ROOT / "docs" / f"{name}.md" for name in ("tutorial", "coming-from")}


def run_page(page: Path) -> list[str]:
    """Run a page in a process of its own, and return what each block prints."""
    done = subprocess.run(
        [sys.executable, "-m", told_page.__name__, str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs: list[str] = json.loads(done.stdout.splitlines()[-1])
    return outputs


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_shows(name: str) -> None:
    """A learner who sees something else than the page stops there."""
    text = PAGES[name].read_text()
    blocks = list_blocks(text)
    assert len(blocks) > 5
    printed = run_page(PAGES[name])
    assert [each.shown for each in blocks] == printed, "python -m tests.unit.project.test_tutorial writes it"
    assert text.count("```python") == len(blocks)


if __name__ == "__main__":
    for page in PAGES.values():
        page.write_text(show_outputs(page.read_text(), run_page(page)))
