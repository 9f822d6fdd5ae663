"""What an installation is made of: the packages that the project leads to, and the jars of `seamline setup`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.licences import Licences
from seamline.model.errors import SetupError
from seamline.runtime.java import list_java_parts

GROUPS = ("spark", "kafka")


@dataclass(frozen=True, order=True)
class Component:
    """One thing that is installed."""

    purl: str
    """Its package URL, which names it anywhere."""
    name: str
    """As its registry spells it; of a jar ``organisation:artifact``."""
    version: str
    """The exact one."""
    licence: str
    """An SPDX expression."""
    needs: tuple[str, ...] = ()
    """Package URLs of what it asks for."""
    sha256: str = ""
    """Of its bytes, where every installation has the same."""


def list_packages(root: Path, licences: Licences) -> tuple[list[Component], list[str]]:
    """List the packages that the project leads to with all its extras, and the URLs of those that it asks for itself.

    SetupError where what is installed is not what is pinned: the release would list other versions than it is
    tested with.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    needs = gather_needs(line for line in lines if Requirement(line).name != project["name"])
    require_pinned(needs, root / "requirements.txt")
    urls = {name: f"pkg:pypi/{name}@{metadata.version(name)}" for name in needs}
    found = [
        Component(
            urls[name],
            name,
            metadata.version(name),
            licences.read_package_licence(name),
            tuple(sorted(urls[each] for each in needs[name])),
        )
        for name in sorted(needs)
    ]
    asked = {canonicalize_name(Requirement(line).name) for line in lines} - {project["name"]}
    return found, sorted(urls[name] for name in asked)


def gather_needs(lines: Iterable[str]) -> dict[str, set[str]]:
    """Follow requirements through the metadata of what is installed: each package with those that it asks for."""
    todo = [("", Requirement(line)) for line in lines]
    found: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    while todo:
        asker, each = todo.pop()
        name = canonicalize_name(each.name)
        found.setdefault(name, set())
        if asker and asker != name:
            found[asker].add(name)
        for extra in {"", *each.extras} - {extra for there, extra in seen if there == name}:
            seen.add((name, extra))
            todo += [(name, need) for need in list_requirements(name, extra)]
    return found


def list_requirements(name: str, extra: str) -> list[Requirement]:
    """List what a package asks for here, with one of its extras."""
    needs = map(Requirement, metadata.requires(name) or ())
    return [each for each in needs if not each.marker or each.marker.evaluate({"extra": extra})]


def require_pinned(names: Iterable[str], pins: Path) -> None:
    """Raise SetupError unless each package is installed in the version that is pinned."""
    wanted: dict[str, str] = {}
    for line in pins.read_text().splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            if not pin.marker or pin.marker.evaluate():
                wanted[canonicalize_name(pin.name)] = str(pin.specifier).removeprefix("==")
    if other := [each for each in sorted(names) if metadata.version(each) != wanted.get(each)]:
        raise SetupError(
            f"{len(other)} packages are not installed as they are pinned, among them {other[0]} "
            f"{metadata.version(other[0])} (pinned: {wanted.get(other[0], 'not')}).",
            hint="make setup installs what is pinned; make lock pins what is asked for.",
        )


def list_jars(licences: Licences) -> list[Component]:
    """List the jars of Spark and of the broker, each with its checksum."""
    return sorted(
        {
            Component(
                f"pkg:maven/{part.organisation}/{part.name}@{part.revision}?type=jar",
                f"{part.organisation}:{part.name}",
                part.revision,
                licences.read_jar_licence(part.organisation, part.name),
                sha256=part.sha256,
            )
            for group in GROUPS
            for part in list_java_parts(group)
        }
    )
