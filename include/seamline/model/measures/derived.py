"""Measures made of other measures when they are presented; they have no state of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from seamline.model.measures.monoid import Measure, Part, Place


@dataclass(frozen=True)
class Derived(Measure):
    """What is presented from what other measures present."""

    def parts(self, input: str) -> tuple[Part, ...]:
        return ()

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return None

    def plus(self, left: Any, right: Any) -> Any:
        return None


@dataclass(frozen=True)
class Ratio(Derived):
    """One measure of the view over another; NULL where either is, and over zero."""

    above: str = ""
    """The name of the measure above."""
    below: str = ""
    """The name of the measure below."""
    kind: ClassVar[str] = "ratio"

    def result(self, input: str) -> str:
        return "DOUBLE"

    def divided(self, above: Any, below: Any) -> float | None:
        """Divide the presented values of the two measures."""
        return None if above is None or not below else float(above) / float(below)


@dataclass(frozen=True)
class Formula(Derived):
    """An SQL expression over what its parts present; each is a measure of its own, whose state is kept.

    This is a user's own measure in SQL: a part prepares and merges, so that the laws hold by construction, and the
    expression presents.
    """

    sql: str = ""
    """The expression, in Spark SQL, over the names of the parts."""
    made_of: Mapping[str, Measure] = field(default_factory=dict)
    """The parts by name."""
    kind: ClassVar[str] = "formula"

    def result(self, input: str) -> str:
        return input


def present_all(measures: Mapping[str, Measure], states: Mapping[str, Any]) -> dict[str, Any]:
    """Present the states of a view's measures by name, those made of others last; formulas need an engine."""
    stated = {
        name: measure.present(states[name])
        for name, measure in measures.items()
        if not isinstance(measure, Derived)
    }
    return {
        name: measure.divided(stated[measure.above], stated[measure.below])
        if isinstance(measure, Ratio)
        else stated[name]
        for name, measure in measures.items()
        if not isinstance(measure, Formula)
    }
