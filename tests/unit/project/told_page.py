"""Run a page's Python from top to bottom, with nothing installed but the package alone.

    python -m tests.unit.project.told_page docs/tutorial.md

The last line is a JSON array: what each block has printed.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.project.closed_environment import Closed, required_by

ROOT = Path(__file__).parents[3]
TOLD = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A piece of Python on a page."""

    code: str
    """What the reader types."""
    shown: str
    """What the page says that it prints; empty if the page shows nothing."""


def list_blocks(text: str) -> list[Block]:
    """List a page's Python, each piece with the output that stands right below it."""
    return [Block(found["code"], found["shown"] or "") for found in TOLD.finditer(text)]


def run_blocks(codes: Iterable[str], page: str) -> Iterator[str]:
    """Run pieces of Python in one namespace, as a reader does, and yield what each prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in codes:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, page, "exec"), names)
        yield printed.getvalue()


def show_outputs(text: str, outputs: Iterable[str]) -> str:
    """Write below each piece of Python what it has printed."""
    told = iter(outputs)

    def shown(found: re.Match[str]) -> str:
        printed = next(told)
        return f"```python\n{found['code']}```\n" + (f"\n```text\n{printed}```\n" if printed else "")

    return TOLD.sub(shown, text)


def main(page: Path) -> None:
    """Run a page where Spark and Airflow cannot be imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sys.meta_path.insert(0, Closed(required_by(project["dependencies"])))
    codes = [each.code for each in list_blocks(page.read_text())]
    print(json.dumps(list(run_blocks(codes, page.name))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
