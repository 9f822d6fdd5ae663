"""No test runs the benchmarks, and most take minutes: what they import must be there all the same."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "benchmarks").rglob("*.py"))


def list_imported_names(source: ast.Module) -> Iterator[tuple[str, str]]:
    """List the names that a module imports from ours, with the modules that they are of."""
    for node in ast.walk(source):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in (
            "seamline",
            "benchmarks",
        ):
            yield from ((str(node.module), each.name) for each in node.names)


def has_name(module: str, name: str) -> bool:
    """Return whether a module has a name; a benchmark is not imported for it, since a peer would begin to run."""
    if module.startswith("seamline"):
        found = importlib.import_module(module)
        inside = hasattr(found, "__path__") and importlib.util.find_spec(f"{module}.{name}")
        return hasattr(found, name) or bool(inside)
    place = ROOT / module.replace(".", "/")
    if place.is_dir():
        return (place / f"{name}.py").exists() or (place / name).is_dir()
    tree = ast.parse(place.with_suffix(".py").read_text())
    made = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {each.asname or each.name for each in node.names}
    return name in made


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    """A name that has moved would be found out by whoever wants a figure."""
    missing = [
        f"{module}.{name}"
        for module, name in list_imported_names(ast.parse(path.read_text()))
        if not has_name(module, name)
    ]
    assert not missing
