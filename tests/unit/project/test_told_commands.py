"""Command lines that the pages tell people to type are ones that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import pytest

from seamline.cli import seamline

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ {4,}(seamline .*)$", re.MULTILINE)
INLINE = re.compile(r"`(seamline [a-z][^`]*)`")
BEHIND = re.compile(r"\s+#.*| && .*")


def typed(text: str) -> Iterator[list[str]]:
    """List the arguments of the command lines that a page gives to be typed."""
    yield from (shlex.split(BEHIND.sub("", line))[1:] for line in BLOCK.findall(text))


def named(text: str) -> Iterator[list[str]]:
    """List the arguments of those that a page names in a sentence, which may leave some out."""
    yield from (line.split()[1:] for line in INLINE.findall(text))


def parse(arguments: Sequence[str]) -> None:
    """Parse a command line without running it; ClickException if it cannot be."""
    command: click.Command = seamline
    context, rest = click.Context(seamline, info_name="seamline"), list(arguments)
    while isinstance(command, click.Group) and rest:
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context, info_name=name)
        else:
            command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_of_a_page_is_taken(page: Path) -> None:
    """An option that was renamed is found by the first reader who copies the line."""
    text = page.read_text()
    assert list(refusals(typed(text))) == []
    assert [said for said, error in refusals(named(text)) if not isinstance(error, click.BadParameter)] == []


def refusals(lines: Iterable[list[str]]) -> Iterator[tuple[str, click.ClickException]]:
    """List command lines that cannot be parsed, and why."""
    for arguments in lines:
        try:
            parse(arguments)
        except click.ClickException as error:
            yield f"{' '.join(arguments)}: {error.format_message()}", error


def test_a_wrong_command_line_is_found() -> None:
    """A test that takes everything finds nothing."""
    wrong = ["query orders.sums --until 3", "stream begin orders", "plan orders --from", "history"]
    assert len(list(refusals(line.split() for line in wrong))) == 4
    assert sum(len([*typed(page.read_text())]) for page in PAGES) > 80
