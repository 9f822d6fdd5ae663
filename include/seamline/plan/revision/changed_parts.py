"""Which parts of a version's fingerprint differ between two definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seamline.plan.revision.revision_facts import Facts

NAMED_PAIRS = frozenset({"select", "side", "rules", "lookups", "bounds", "added"})
"""Parts that list other parts, each with its name first."""
WHOLE = frozenset({"measures"})
"""Parts whose own parts are compared as wholes."""


@dataclass(frozen=True)
class PartChange:
    """A part of a fingerprint that differs."""

    part: str
    """Its name, with dots: ``measures.total``, ``record.rules.positive``."""
    before: Any
    """What it was; None where there was none."""
    after: Any
    """What it is; None where there is none."""


def list_part_changes(before: Facts, after: Facts) -> tuple[PartChange, ...]:
    """List the parts that differ, those of the later definition first, in its order."""
    old, new = dict(flatten_facts(before)), dict(flatten_facts(after))
    return tuple(
        PartChange(part, old.get(part), new.get(part))
        for part in {**new, **old}
        if old.get(part) != new.get(part)
    )


def flatten_facts(facts: Facts, above: str = "", *, deep: bool = True) -> Iterator[tuple[str, Any]]:
    """List each part with its name. What is empty is as if it were not said."""
    for name, value in facts.items():
        part = f"{above}{name}"
        if name in NAMED_PAIRS and isinstance(value, list):
            yield from ((f"{part}.{each[0]}", each[1:]) for each in value)
        elif isinstance(value, Mapping) and deep:
            yield from flatten_facts(value, f"{part}.", deep=name not in WHOLE)
        elif value not in ("", [], {}, None):
            yield part, value
