"""The tutorial is run as it stands on its page.

``python -m tests.unit.project.test_tutorial`` writes anew what its blocks print.
"""

from __future__ import annotations

import json
import subprocess
import sys

from tests.unit.project import told_page
from tests.unit.project.told_page import ROOT, list_blocks, show_outputs

PAGE = ROOT / "docs" / "tutorial.md"


def run_tutorial() -> list[str]:
    """Run the page in a process of its own, and return what each block prints."""
    done = subprocess.run(
        [sys.executable, "-m", told_page.__name__, str(PAGE)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs: list[str] = json.loads(done.stdout.splitlines()[-1])
    return outputs


def test_the_tutorial_prints_what_it_shows() -> None:
    """A learner who sees something else than the page stops there."""
    blocks = list_blocks(PAGE.read_text())
    assert len(blocks) > 10
    printed = run_tutorial()
    assert [each.shown for each in blocks] == printed, "python -m tests.unit.project.test_tutorial writes it"
    assert PAGE.read_text().count("```python") == len(blocks)


if __name__ == "__main__":
    PAGE.write_text(show_outputs(PAGE.read_text(), run_tutorial()))
