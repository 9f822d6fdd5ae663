"""A view as others are told of it: what it is counted by, and what is counted."""

from __future__ import annotations

from typing import Any

from seamline.model.compile.compiled_view import CompiledView
from seamline.model.measures import Formula, Measure, Ratio


def serialize_view(view: CompiledView) -> dict[str, Any]:
    """Return a view as JSON has it: its keys and measures by name, with their Spark types."""
    return {
        "pipeline": view.pipeline,
        "view": view.name,
        "version": view.fingerprint,
        **({"of": list(view.of)} if view.of else {}),
        "keys": {key.name: key.type.spark for key in view.keys},
        "window": str(view.window),
        "measures": {measure.name: measure.result for measure in view.measures},
    }


def describe_measure(measure: Measure) -> str:
    """Say what a measure is, as its definition does: ``sum(amount) where paid``."""
    match measure:
        case Ratio():
            return f"{measure.above} / {measure.below}"
        case Formula():
            parts = ", ".join(f"{name} = {describe_measure(part)}" for name, part in measure.made_of.items())
            return f"{measure.sql}, with {parts}"
    where = f" where {measure.where}" if measure.where else ""
    return f"{measure.kind}({measure.of}){where}{', approximate' * measure.approximate}"
