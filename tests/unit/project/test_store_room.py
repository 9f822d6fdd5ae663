"""Who touches the files of a warehouse, and what is said to work with one in a bucket."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.test_in_bucket import PARTS

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "include" / "seamline"
ROOM = ("lake", "store")
AT_WAREHOUSES = ("lake", "serve", "quality", "web", "kernel", "plan", "spark/build")
"""The rooms that have to do with places of a warehouse; the others have files of this machine."""
MODULES = frozenset({"os", "shutil", "tempfile", "fcntl", "glob"})
NO_FILES = frozenset({"os.cpu_count", "os.environ", "os.getpid", "os.strerror"})
METHODS = frozenset({"open", "rglob", "touch", "resolve", "absolute", "symlink_to", "hardlink_to", "chmod"})
"""What a ``Path`` has and a place in a bucket has not."""
ALLOWED = {
    "kernel/id_runs.py": "an index of event ids is in the home of this machine",
    "kernel/kernel_config.py": "no place: nothing is written there",
    "lake/joins/index_files.py": "an index of joined rows is in the home of this machine",
    "lake/log/log_lines.py": "the machine's boot id",
    "lake/storage/durability.py": "what is synced is on a disk",
    "lake/storage/layout.py": "the folders of this machine and of definitions",
    "lake/storage/log_damage.py": "the ends of files that a power cut may have torn",
    "lake/storage/log_wholeness.py": "the ends of files that a power cut may have torn",
    "web/glance/card_reader.py": "no place: the pipes of a process that reads (decision 0050)",
}
"""Modules that touch files otherwise, and what for. The list grows by a decision and no other way."""


IN_A_BUCKET = ("tests/conformance/on_bucket.py", "tests/unit/lake/store/")
"""Tests that have a bucket by themselves."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Parse the package's modules outside the room."""
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE)
        if name.parts[:2] != ROOM:
            yield name.as_posix(), ast.parse(file.read_text())


def touches(module: ast.Module) -> Counter[str]:
    """Count what a module does to files other than by a place's own words."""
    found: Counter[str] = Counter()
    for node in ast.walk(module):
        match node:
            case ast.Attribute(ast.Name(name), attribute) if name in MODULES:
                found[f"{name}.{attribute}"] += f"{name}.{attribute}" not in NO_FILES
            case ast.Call(ast.Name(name)) if name in ("open", "Path"):
                found[name] += 1
            case ast.Call(ast.Attribute(of, name)) if name in METHODS and not is_class(of):
                found[f".{name}"] += 1
    return +found


def is_class(node: ast.expr) -> bool:
    """Return whether a name is that of a class, as in ``Table.open``."""
    return isinstance(node, ast.Name) and (node.id == "cls" or node.id[0].isupper())


def test_the_files_of_a_warehouse_are_touched_in_one_room() -> None:
    """What works on a disk alone is found here, and not by whoever has a bucket."""
    found = {
        name: touches(module)
        for name, module in modules()
        if any(name.startswith(f"{room}/") for room in AT_WAREHOUSES)
    }
    touching = {name: sorted(words) for name, words in found.items() if words}
    assert {name: words for name, words in touching.items() if name not in ALLOWED} == {}
    assert sorted(ALLOWED.keys() - touching) == [], "these touch no file any more"


def test_one_room_knows_which_places_are_in_a_bucket() -> None:
    """A case for one of the two, elsewhere, is one that nobody has tried with the other."""
    asking = {
        name
        for name, module in modules()
        for node in ast.walk(module)
        if (isinstance(node, ast.ImportFrom) and node.module == "seamline.lake.store.object_path")
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "isinstance"
            and {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            & {"Path", "PurePath"}
        )
    }
    assert asking == set()


def test_a_use_of_files_is_seen() -> None:
    """A search that finds nothing proves nothing."""
    seen = touches(ast.parse("import os\nos.rename(a, b)\nopen(c)\nd.rglob('*')\nTable.open(e)\nos.environ"))
    assert seen == {"os.rename": 1, "open": 1, ".rglob": 1}


@dataclass(frozen=True)
class Shown:
    """A line of docs/stores.md that says what works in a bucket."""

    what: str
    file: str
    test: str
    slow: bool
    """Whether it is said to be of the slow suite."""

    @property
    def marked(self) -> bool:
        """Return whether the test is one that `make test` runs in a bucket, too."""
        module = ast.parse((ROOT / self.file).read_text())
        return any(
            (
                isinstance(node, ast.FunctionDef)
                and node.name == self.test
                and any(ast.unparse(each) == "pytest.mark.everywhere" for each in node.decorator_list)
            )
            or (
                isinstance(node, ast.Assign)
                and ast.unparse(node).startswith("pytestmark =")
                and "everywhere" in ast.unparse(node)
            )
            for node in module.body
        )


def shown() -> Iterator[Shown]:
    """Read the table."""
    text = (
        (ROOT / "docs" / "stores.md").read_text().partition("### What works there")[2].partition("\n### ")[0]
    )
    for line in text.splitlines():
        if line.startswith("| ") and "`tests/" in line:
            what, tests = (each.strip() for each in line.strip("|").split("|"))
            for file, test in re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", tests):
                yield Shown(what, file, test, tests.endswith(", F"))


@pytest.mark.parametrize("line", [*shown()], ids=lambda line: f"{line.what}: {line.file}")
def test_what_is_said_to_work_in_a_bucket_is_tested_there(line: Shown) -> None:
    """A list that nobody checks says what somebody hoped."""
    assert (ROOT / line.file).exists()
    assert not line.test or f"def {line.test}(" in (ROOT / line.file).read_text()
    if line.slow:
        run = [path for paths in PARTS.values() for path in paths]
        named = f"{line.file}::{line.test}" if line.test else line.file
        assert line.file.startswith(("tests/faults/", *IN_A_BUCKET)) or any(
            named.startswith(path) for path in run
        )
    else:
        assert line.file.startswith(IN_A_BUCKET) or line.marked
