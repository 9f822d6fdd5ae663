"""Measures made of other measures when they are presented; they have no state of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from seamline.model.measures.monoid import Measure, Part, Place


@dataclass(frozen=True)
class Ratio(Measure):
    """One measure of the view over another; NULL where either is, and over zero."""

    above: str = ""
    below: str = ""
    kind: ClassVar[str] = "ratio"

    def parts(self, input: str) -> tuple[Part, ...]:
        return ()

    def result(self, input: str) -> str:
        return "DOUBLE"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return None

    def plus(self, left: Any, right: Any) -> Any:
        return None

    def of_presented(self, presented: Mapping[str, Any]) -> float | None:
        """Divide the presented values of the two measures."""
        above, below = presented[self.above], presented[self.below]
        return None if above is None or not below else float(above) / float(below)


def present_all(measures: Mapping[str, Measure], states: Mapping[str, Any]) -> dict[str, Any]:
    """Present the states of a view's measures by name, those made of others last."""
    stated = {
        name: measure.present(states[name])
        for name, measure in measures.items()
        if not isinstance(measure, Ratio)
    }
    return {
        name: measure.of_presented(stated) if isinstance(measure, Ratio) else stated[name]
        for name, measure in measures.items()
    }
