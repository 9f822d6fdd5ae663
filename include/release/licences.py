"""The licence of each component, as an SPDX expression, and whether a release may come with it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from seamline.model.errors import SetupError

if TYPE_CHECKING:
    from release.components import Component

LISTING = Path(__file__).with_name("licences.toml")
HEAD = """# Licences

What is installed with seamline {release} and all of its extras, on {platform}: Python packages, and the jars that
`seamline setup` fetches. `make dist` writes this, and fails for a licence that is not on the list of
`include/release/licences.toml`.

| component | version | licence |
| --- | --- | --- |
"""


@dataclass(frozen=True)
class Licences:
    """What licences.toml says."""

    allowed: frozenset[str]
    """SPDX identifiers that a release may come with."""
    texts: Mapping[str, str]
    """What packages say of themselves, to what it means."""
    packages: Mapping[str, str]
    """Packages whose own words are not enough, to what their licence file says."""
    jars: Mapping[str, str]
    """Organisations, or ``organisation:artifact`` where one is another, to the licence of their jars."""

    def read_package_licence(self, name: str) -> str:
        """Read the licence of an installed package; SetupError where nothing of what it says is understood."""
        about = metadata.metadata(name)
        expression, text = (
            str((about.get_all(field) or [""])[0]) for field in ("License-Expression", "License")
        )
        classified = [each for each in about.get_all("Classifier") or () if each.startswith("License ::")]
        if name in self.packages:
            return self.packages[name]
        if expression:
            return expression
        if text in self.texts or text in self.allowed:
            return self.texts.get(text, text)
        if classified and all(each in self.texts for each in classified):
            return " OR ".join(self.texts[each] for each in classified)
        said = "; ".join([*text.splitlines()[:1], *classified]) or "it says nothing"
        raise SetupError(
            f"The licence of {name} is not understood: {said}.",
            hint=f"read its licence file, and add {name} to [packages] of {LISTING.name}.",
        )

    def read_jar_licence(self, organisation: str, name: str) -> str:
        """Read the licence of a jar from the list; SetupError for one that nobody has looked up."""
        found = self.jars.get(f"{organisation}:{name}") or self.jars.get(organisation)
        if found is None:
            raise SetupError(
                f"Nobody has looked up the licence of {organisation}:{name}.",
                hint=f"add it to [jars] of {LISTING.name}.",
            )
        return found

    def allows(self, expression: str) -> bool:
        """Say whether one choice of the expression has allowed licences only; parentheses are not understood."""
        choices = [choice.split(" AND ") for choice in expression.split(" OR ")]
        return any(all(each in self.allowed for each in choice) for choice in choices)


def load_licences(listing: Path = LISTING) -> Licences:
    """Load licences.toml."""
    said = tomllib.loads(listing.read_text())
    return Licences(frozenset(said["allowed"]), said["texts"], said["packages"], said["jars"])


def require_allowed(components: Iterable[Component], licences: Licences) -> None:
    """Raise SetupError that names each component whose licence is not allowed."""
    if refused := [each for each in components if not licences.allows(each.licence)]:
        names = "; ".join(f"{each.name} {each.version}: {each.licence}" for each in refused)
        raise SetupError(
            f"{len(refused)} components have a licence that is not on the list: {names}.",
            hint=f"leave them out, or decide that such a licence is fine and add it to {LISTING.name}.",
        )


def list_licences(components: Iterable[Component], release: str, platform: str) -> str:
    """Write the page of licences."""
    rows = (f"| {each.name} | {each.version} | {each.licence} |\n" for each in components)
    return HEAD.format(release=release, platform=platform) + "".join(rows)
