"""The site of the pages: all that it should contain is there, and every link leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.unit.project import test_exit_codes

import seamline
import seamline.client
import seamline.testing
from seamline.cli import seamline as command_line

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
LISTED = re.compile(r"^\.\. (?:auto\w+|click):: ([\w.:]+)$", re.MULTILINE)
COMMAND = re.compile(r"^\.\. click:: (\S+)\n   :prog: (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]+)?\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HREF = re.compile(r'href="([^"#:]*)#([^"]+)"')
LOADED = re.compile(r'<(?:script|img|link)\b[^>]*\b(?:src|href)="(?:https?:)?//')


def listed(page: str) -> set[str]:
    """List what a page of the reference describes."""
    return set(LISTED.findall((REFERENCE / page).read_text()))


def test_the_reference_has_every_public_name() -> None:
    """A name that is exported and described nowhere is found by reading the source only."""
    described = {name for page in REFERENCE.glob("*.md") for name in listed(page.name)}
    assert {f"seamline.{name}" for name in seamline.__all__} <= described
    assert {f"seamline.testing.{name}" for name in seamline.testing.__all__} <= described
    assert {"seamline.client.Client", "seamline.client.Refused"} <= described


def test_the_reference_has_every_error() -> None:
    """Whoever catches an error looks for what else it may be."""
    test_exit_codes.import_all()
    kinds = {f"{kind.__module__}.{kind.__name__}" for _, kind in test_exit_codes.kinds()}
    assert kinds == listed("errors.md")


def test_the_reference_has_every_command() -> None:
    """Each command is in the section of its task; a new one needs two lines in docs/reference/cli.md."""
    shown = set(COMMAND.findall((REFERENCE / "cli.md").read_text()))
    there = {("seamline.cli:seamline", "seamline")}
    for name, command in command_line.commands.items():
        assert command.callback is not None
        there.add((f"{command.callback.__module__}:{command.callback.__name__}", f"seamline {name}"))
    assert shown == there


def pages() -> list[Path]:
    """List what people read on a code host."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    """A link that works on the site alone is dead where most people read; anchors are the build's to check."""
    targets = [unquote(path) for path, _ in LINK.findall(CODE.sub("", page.read_text()))]
    assert [each for each in targets if "://" not in each and not (page.parent / each).exists()] == []


def test_the_list_of_pages_has_every_page() -> None:
    """docs/README.md is the way in on a code host, index.md on the site."""
    shown = {path.split("/")[0] for path, _ in LINK.findall((DOCS / "README.md").read_text())}
    there = {page.name for page in DOCS.glob("*.md")} - {"README.md", "index.md"}
    assert shown == there | {page.parent.name for page in DOCS.glob("*/*.md")}


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Sphinx warns of a page that nothing leads to, of a link or an anchor that is not there, and of bad docstrings."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    built = {page: page.read_text() for page in tmp_path.rglob("*.html")}
    assert len(built) > len([*DOCS.rglob("*.md")]) - 1
    assert [page.name for page, text in built.items() if LOADED.search(text)] == []
    assert list(dead_anchors(built)) == []


def dead_anchors(built: dict[Path, str]) -> Iterator[str]:
    """List links of pages to places that no page has."""
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in built.items()}
    for page, text in built.items():
        for path, anchor in HREF.findall(text):
            target = (page.parent / path).resolve() if path else page
            if unquote(anchor) not in places.get(target, ()):
                yield f"{page.name}: {path}#{anchor}"
