"""Measures of rows that can be withdrawn: what a row has added is taken away again (docs/protocol.md, rule 26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError
from seamline.model.measures.derived import Formula, Ratio
from seamline.model.measures.gathered import Histogram
from seamline.model.measures.monoid import Measure
from seamline.model.measures.plain import Average, Count, Sum
from seamline.model.types.decimals import EXACT

WITHOUT_DOUBLES = ("INT", "BIGINT", "DECIMAL")
REASONS: Mapping[str, str] = {
    "min": "the row that is withdrawn may have had the smallest value, and nobody knows the next one",
    "max": "the row that is withdrawn may have had the largest value, and nobody knows the next one",
    "first": "the row that is withdrawn may have been the first, and nobody knows the next one",
    "last": "the row that is withdrawn may have been the last, and nobody knows the one before it",
    "distinct": "a value of the row that is withdrawn may be in others, and a sketch does not count them",
    "quantile": "a sketch forgets which values it has seen",
    "quantiles": "a sketch forgets which values it has seen",
    "top": "what was left out for want of room may belong to the most frequent now",
    "collect_distinct": "a value of the row that is withdrawn may be in others, and nobody counts them",
    "variance": "what rounding lost does not come back",
    "stddev": "what rounding lost does not come back",
    "own": "its plus has no opposite",
}
"""Why rows of a measure cannot be withdrawn, by its kind."""


class WithoutDoubles:
    """Takes numbers that add up exactly: NaN and infinite values cannot be taken out of a total again."""

    def check(self, input: str) -> None:
        """Refuse doubles; DefinitionError."""
        super().check(input)  # type: ignore[misc]
        if input == "DOUBLE":
            of, kind = self.of, self.kind  # type: ignore[attr-defined]
            raise DefinitionError(
                f"{kind}({of}) adds up DOUBLE, and rows can be withdrawn: what rounding lost, NaN and infinite values "
                "cannot be taken out of a total.",
                hint=f"cast it: {kind}('CAST({of} AS DECIMAL(18,2))').",
            )


@dataclass(frozen=True)
class NetAverage(WithoutDoubles, Average):
    """The mean of the values that are left."""


@dataclass(frozen=True)
class NetSum(WithoutDoubles, Average):
    """The total of the values that are left, which are counted: it is NULL where there is none."""

    kind: ClassVar[str] = "sum"

    @property
    def monoid(self) -> tuple[Any, ...]:
        return (self.kind, "n")

    def result(self, input: str) -> str:
        return self.total(input)

    def present(self, state: Any) -> Any:
        total, n = state
        return None if not n or self.beyond(total) else self.whole(total)


def make_net(measure: Measure) -> Measure:
    """Return a measure from which rows can be withdrawn; DefinitionError says why there is none."""
    if isinstance(measure, Formula):
        return replace(measure, made_of={name: make_net(each) for name, each in measure.made_of.items()})
    if isinstance(measure, Count | Histogram | Ratio | NetSum | NetAverage):
        return measure
    if isinstance(measure, Average):
        return NetAverage(measure.of, where=measure.where)
    if isinstance(measure, Sum):
        return NetSum(measure.of, where=measure.where)
    raise DefinitionError(
        f"{measure.kind}({measure.of}) counts rows that can be withdrawn, and cannot subtract them: "
        f"{REASONS[measure.kind]}.",
        hint="use count, sum, avg, histogram, ratio or formula, or emit what you look for as a column.",
    )


def negate_state(state: Any) -> Any:
    """Return the state that takes away what another has added."""
    if isinstance(state, tuple):
        return tuple(map(negate_state, state))
    # A minus sign rounds a decimal to the digits of the thread.
    return EXACT.minus(state) if isinstance(state, Decimal) else None if state is None else -state
