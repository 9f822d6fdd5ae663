"""Grouping sets of a view, as in SQL's GROUPING SETS."""

from __future__ import annotations

from seamline.model.compile.problems import Problems
from seamline.model.definition.pipeline import View
from seamline.model.definition.windows import CountWindow

GROUPING = "grouping"
"""The column that names a row's grouping set, where a view has several."""
NUMBER = "window_number"
"""The key that numbers the count windows, from 1 in each interval."""


def compile_grouping_sets(view: View, problems: Problems) -> tuple[tuple[str, ...], ...]:
    """Check the grouping sets and return each in the order of the keys; one of all keys where none is declared."""
    if not view.grouping_sets:
        number = (NUMBER,) if isinstance(view.window, CountWindow) else ()
        return ((*view.keys, *number),)
    place, sets = f"views[{view.name}].grouping_sets", []
    for declared in view.grouping_sets:
        for name in declared:
            if name not in view.keys:
                problems.note(
                    place,
                    view.origin,
                    f"{name!r} is not a key of the view.",
                    "add it to keys, which must contain every column of a set.",
                )
        found = tuple(key for key in view.keys if key in declared)
        if found in sets:
            problems.note(
                place, view.origin, f"The set of {', '.join(found) or 'no keys'} is repeated.", "keep one."
            )
        sets.append(found)
    for key in view.keys:
        if not any(key in each for each in sets):
            problems.note(
                place,
                view.origin,
                f"The key {key!r} is in no set.",
                "remove it from keys, or add a set with it.",
            )
    if GROUPING in [*view.keys, *view.measures]:
        problems.note(
            place, view.origin, f"{GROUPING!r} is the column that names a row's set.", "rename your column."
        )
    return tuple(sets)
