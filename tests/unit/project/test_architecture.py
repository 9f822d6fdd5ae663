"""The map of docs/architecture.md is made of the code.

``python -m tests.unit.project.test_architecture`` writes it anew.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CODE = ROOT / "include" / "seamline"
PAGE = ROOT / "docs" / "architecture.md"
HOUSES = ("lake", "model", "plan", "spark")
"""Packages whose rooms are drawn one by one."""
ALONE = ("", "client", "version")
"""Modules that stand in no room."""
BEGIN, END = "<!-- made by python -m tests.unit.project.test_architecture -->", "<!-- end -->"
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MOST_FILES, MOST_LINES = 25, 300

Edges = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Find every module by its dotted name below the package."""
    found = {}
    for file in sorted(CODE.rglob("*.py")):
        parts = file.relative_to(CODE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(file: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """List the modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seamline."):
            module = str(node.module).removeprefix("seamline.")
            for name in node.names:
                whole = f"{module}.{name.name}"
                yield whole if whole in known else module


def room(module: str) -> str:
    """Name the room of a module: its package, of a house's modules the package in it."""
    parts = module.split(".")
    return "/".join(parts[:2] if parts[0] in HOUSES and len(parts) > 2 else parts[:1])


def drawn() -> Edges:
    """Return for each room those that it imports from."""
    known = modules()
    found: Edges = {}
    for module, file in known.items():
        if room(module) in (*ALONE, *HOUSES):
            continue
        there = {room(each) for each in imported(file, known)} - {room(module), *ALONE, *HOUSES}
        found.setdefault(room(module), set()).update(there)
    return found


def reduced(edges: Edges) -> Edges:
    """Leave out what follows from the rest: an import that is also reached by way of another room."""

    def reached(start: str) -> set[str]:
        return {start, *(each for step in edges.get(start, ()) for each in reached(step))}

    return {
        start: {each for each in ends if not any(each in reached(other) for other in ends - {each})}
        for start, ends in edges.items()
    }


def picture(edges: Edges) -> Iterator[str]:
    """Draw rooms as Mermaid does, houses as frames."""
    yield "```mermaid"
    yield "flowchart TD"
    for house in HOUSES:
        yield f"  subgraph {house}"
        yield from (
            f"    {each.replace('/', '_')}[{each}]" for each in sorted(edges) if each.startswith(f"{house}/")
        )
        yield "  end"
    for start, ends in sorted(edges.items()):
        yield from (f"  {start.replace('/', '_')} --> {end.replace('/', '_')}" for end in sorted(ends))
    yield "```"


def listed(edges: Iterable[str]) -> Iterator[str]:
    """List rooms with what they say of themselves."""
    yield "| room | files | what is in it |"
    yield "| --- | ---: | --- |"
    for each in sorted(edges):
        folder = CODE / each
        said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        files = len([file for file in folder.rglob("*.py") if file.name != "__init__.py"])
        yield f"| [{each}](../include/seamline/{each}) | {files} | {said.splitlines()[0].rstrip('.')} |"


def made() -> str:
    """Write the part of the page that is made of the code."""
    edges = drawn()
    return "\n".join([BEGIN, *picture(reduced(edges)), "", *listed(edges), END])


def test_the_map_is_the_code() -> None:
    """Whoever moves a module draws the map anew."""
    assert made() in PAGE.read_text(), "python -m tests.unit.project.test_architecture writes it"


def test_every_file_that_the_page_names_is_there() -> None:
    """A walk leads through files that exist."""
    named = re.findall(r"`((?:include/seamline|spark_jobs)/[\w/]+\.py)`", PAGE.read_text())
    short = re.findall(r"`((?:[a-z_]+/)+[\w]+\.py)`", PAGE.read_text())
    there = [
        each if each.startswith(("include/", "spark_jobs/")) else f"include/seamline/{each}" for each in short
    ]
    assert len({*named, *there}) > 30
    assert not [each for each in {*named, *there} if not (ROOT / each).is_file()]


FOLDERS = {file.parent for top in ("include", "tests") for file in (ROOT / top).rglob("*.py")}


@pytest.mark.parametrize("folder", sorted(FOLDERS), ids=lambda each: str(each.relative_to(ROOT)))
def test_a_room_can_be_overlooked(folder: Path) -> None:
    """A folder of more than 25 files is more than one room, of code or of tests."""
    assert len([*folder.glob("*.py")]) <= MOST_FILES


def test_a_module_is_read_at_once() -> None:
    """A module of many hundred lines holds two concepts."""
    assert [file.name for file in modules().values() if len(file.read_text().splitlines()) > MOST_LINES] == []


SAME = {
    "serve": {"read"},
    "web": {"audits", "completeness", "explain", "stream", "views"},
    "cli": {"list_", "run", "start", "status", "stop"},
    "jobs": {"main"},
    "local": {"airlines", "airports", "data_file", "main", "records"},
    "model": {"check_names", "compile_expression", "distinct", "own"},
}
"""Names that a layer has twice: commands and routes of two groups, overloads, what one part gives on from another."""


def test_a_layer_has_a_name_once() -> None:
    """Whoever searches for a function finds it, and nothing else."""
    found: dict[str, Counter[str]] = {}
    for module, file in modules().items():
        layer = module.partition(".")[0]
        names = (node.name for node in ast.parse(file.read_text()).body if isinstance(node, DEFINED))
        found.setdefault(layer, Counter()).update(name for name in names if not name.startswith("_"))
    twice = {layer: {name for name, times in names.items() if times > 1} for layer, names in found.items()}
    assert {
        layer: names - SAME.get(layer, set())
        for layer, names in twice.items()
        if names - SAME.get(layer, set())
    } == {}


def write() -> None:
    """Write the map anew."""
    page = PAGE.read_text()
    PAGE.write_text(re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: made(), page, flags=re.DOTALL))


if __name__ == "__main__":
    write()
