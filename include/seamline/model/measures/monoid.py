"""What a measure is: a commutative monoid over one expression of a row, and its finaliser."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError

INTEGERS = ("INT", "BIGINT")
NUMBERS = (*INTEGERS, "DOUBLE", "DECIMAL")
ORDERED = (*NUMBERS, "STRING", "DATE", "TIMESTAMP", "BOOLEAN")

Place = tuple[datetime, int, int, int]
"""Where a row stands: event time, partition, offset, and which item of its record it is (0 without explode)."""


@dataclass(frozen=True)
class Part:
    """One stored column of a state."""

    name: str
    """Its name after ``<measure>__``."""
    type: str
    """Its Spark type."""
    late: bool = False
    """Whether earlier releases did not have it: what they wrote is read with NULL in it."""


def strip_type_parameters(type: str) -> str:
    """Drop a type's parameters: ``DECIMAL(10,2)`` is ``DECIMAL``."""
    return type.partition("(")[0].partition("<")[0]


@dataclass(frozen=True)
class Measure:
    """A commutative monoid over one expression of a row, and its finaliser.

    A row in which ``where`` is not true counts as one in which the expression is NULL; NULL adds nothing.
    """

    of: str = ""
    """The expression of a row, in Spark SQL; empty for rows themselves."""
    where: str = field(default="", kw_only=True)
    """The condition, in Spark SQL; empty for all rows."""
    kind: ClassVar[str] = ""
    takes: ClassVar[tuple[str, ...]] = ()
    approximate: ClassVar[bool] = False

    @property
    def zero(self) -> Any:
        """The state of no rows."""
        return None

    @property
    def monoid(self) -> tuple[Any, ...]:
        """Distinguish states apart: measures of equal monoid over equal expressions share one."""
        return (self.kind,)

    @property
    def text(self) -> str:
        """Write the expression with the condition in it; empty for plain rows."""
        return f"CASE WHEN ({self.where}) THEN ({self.of or 'TRUE'}) END" if self.where else self.of

    def check(self, input: str) -> None:
        """Raise DefinitionError where the expression's type has no meaning for this measure."""
        if strip_type_parameters(input) not in self.takes:
            raise DefinitionError(
                f"{self.kind}({self.of}) takes {', '.join(self.takes)}; the expression is {input}.",
                hint="cast the expression, or use another measure.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        """List the columns of a state over an expression of type ``input``."""
        raise NotImplementedError

    def result(self, input: str) -> str:
        """Return the Spark type of the presented value."""
        raise NotImplementedError

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        """Make the state of one row's value (None for NULL)."""
        raise NotImplementedError

    def plus(self, left: Any, right: Any) -> Any:
        """Merge two states; associative, commutative, with ``zero`` as identity."""
        raise NotImplementedError

    def present(self, state: Any) -> Any:
        """Turn a state into the value that people read."""
        return state

    def fold(self, values: Iterable[Any], places: Iterable[Place | None] = repeat(None)) -> Any:
        """Make the state of many values: neighbours are merged, then those, so that no state grows one by one."""
        states = [self.prepare(value, place) for value, place in zip(values, places, strict=False)]
        while len(states) > 1:
            pairs = zip(states[::2], states[1::2], strict=False)
            odd = states[-1:] if len(states) % 2 else []
            states = [*(self.plus(left, right) for left, right in pairs), *odd]
        return self.plus(self.zero, states[0]) if states else self.zero
