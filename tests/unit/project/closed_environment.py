"""Import every module of ours where nothing can be imported but what some requirements lead to.

    python -m tests.unit.project.closed_environment '["click>=8.1", ...]'

The last line is a JSON object: the modules that could not be imported, and why.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib import import_module, metadata
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required_by(lines: Iterable[str]) -> set[str]:
    """Name all distributions that requirements lead to, through the metadata of those that are installed."""
    todo, seen = list(map(Requirement, lines)), set[tuple[str, str]]()
    while todo:
        each = todo.pop()
        for extra in ("", *each.extras):
            if (place := (canonicalize_name(each.name), extra)) not in seen:
                seen.add(place)
                todo += list_needs(each.name, extra)
    return {name for name, _ in seen}


def list_needs(name: str, extra: str) -> list[Requirement]:
    """List what a distribution asks for here, with one of its extras; nothing of one that is not installed."""
    try:
        needs = map(Requirement, metadata.requires(name) or ())
    except metadata.PackageNotFoundError:
        return []
    return [each for each in needs if not each.marker or each.marker.evaluate({"extra": extra})]


class Closed(MetaPathFinder):
    """Refuses modules of distributions that were not asked for."""

    def __init__(self, allowed: set[str]) -> None:
        self.allowed, self.owners = allowed, metadata.packages_distributions()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ModuleNotFoundError, as if the module were not installed."""
        owners = {canonicalize_name(each) for each in self.owners.get(name, ())}
        if owners and not name.startswith("seamline") and not owners & self.allowed:
            raise ModuleNotFoundError(f"No module named {name!r}, of {', '.join(owners)}", name=name)


def main(lines: Iterable[str]) -> None:
    """Import all, and print what failed."""
    sys.meta_path.insert(0, Closed(required_by(lines)))
    import seamline

    root, failed = Path(seamline.__file__).parent, {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if path.stem != "__main__":
            try:
                import_module(".".join(["seamline", *(each for each in parts if each != "__init__")]))
            except ImportError as error:
                failed["/".join(parts)] = str(error)
    print(json.dumps(failed))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
