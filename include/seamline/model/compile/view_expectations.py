"""What a view expects of its columns, checked against those that it presents."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.model.compile.compiled_measure import CompiledMeasure
from seamline.model.compile.problems import Problems
from seamline.model.definition.pipeline import View
from seamline.model.measures import strip_type_parameters


def check_expectations(view: View, measures: Sequence[CompiledMeasure], problems: Problems) -> None:
    """Note what is expected of columns that are not there, and bounds for what has no order."""
    types = {measure.name: strip_type_parameters(measure.result) for measure in measures}
    for expect in view.expect:
        bounded = (expect.at_least, expect.at_most) != (None, None)
        if expect.column not in view.measures and expect.column not in view.keys:
            message = f"The view presents no column {expect.column!r}."
            hint = f"it presents {', '.join([*view.keys, *view.measures])}."
        elif bounded and types.get(expect.column) in ("ARRAY", "STRUCT"):
            message = f"{expect.column!r} presents an {types[expect.column]}, which has no bounds."
            hint = "set bounds on a measure that presents one number, or expect not_null."
        else:
            continue
        problems.note(f"views[{view.name}].expect", expect.origin, message, hint)
