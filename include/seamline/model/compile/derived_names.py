"""The names of derived rows: what ``View(of=)`` takes beside those of sources."""

from __future__ import annotations

from collections.abc import Collection

from seamline.model.compile.problems import Problems
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.changes import Changelog
from seamline.model.definition.folds import Folded
from seamline.model.definition.joins import Join
from seamline.model.definition.pipeline import Pipeline


def check_derived_name(
    pipeline: Pipeline,
    derived: Join | AsOf | Folded | Changelog,
    records: Collection[str],
    problems: Problems,
) -> bool:
    """Note a name that derived rows cannot have, and return whether there is none."""
    place = f"derive[{derived.name}].name"
    if not problems.check_name(place, derived.origin, derived.name):
        return False
    if derived.name in records or [each.name for each in pipeline.derive].count(derived.name) > 1:
        of = "a source" if derived.name in records else "other derived rows"
        problems.note(
            place,
            derived.origin,
            f"{derived.name!r} is the name of {of}, too.",
            "choose another name: it is what View(of=) takes.",
        )
        return False
    return True
