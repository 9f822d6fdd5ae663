"""Both sides' rows of a key in a window, given to a user's class in one call, as a process function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from seamline.model.errors import DefinitionError
from seamline.model.functions.calls import Call
from seamline.model.functions.frozen import make_freezer
from seamline.model.functions.function import LoadedFunction, Row, load_forms, make_instance, require_method
from seamline.model.functions.kept_rows import KeptRows, add_value, join_values
from seamline.model.functions.records import Values
from seamline.model.types.schema import Field
from seamline.model.user_code import class_hash, class_of

RIGHT = "_right"
"""The column of a row that says whether it is of the right side."""
PREFIXES = ("_left_", "_right_")
"""What stands before the columns of a side in the rows of both; those of the other side are NULL."""


class CoGroupFunction(Protocol):
    """What a user's class has: the columns of what it emits, and ``group``."""

    emits: str
    """The columns of what is emitted, in DDL."""

    def group(self, key: Row, lefts: Sequence[Row], rights: Sequence[Row], out: Call) -> None:
        """Take the rows of a key in a window, each side's in the order of event times; one may have none."""
        ...


class BothSides(KeptRows):
    """The rows of a key in a window; the first columns are those of the left side."""

    def __init__(self, fields: Sequence[Field], lefts: int) -> None:
        super().__init__(fields)
        self.lefts = lefts

    def describe(self, values: Values) -> str:
        """Write how many rows there are on each side."""
        left, right = (sum(map(len, values[at])) for at in (0, self.lefts))
        return f"rows: {left:,} left, {right:,} right"


class GroupedRows:
    """Keeps the rows of a key up to the end of their window, and gives them to a user's class there.

    Rows have ``RIGHT``, the columns of the key by the names of the left side, and those of both sides with a prefix.
    """

    def __init__(
        self, made: CoGroupFunction, keys: Mapping[str, str], left: Sequence[Field], right: Sequence[Field]
    ) -> None:
        self.made, self.keys = made, keys
        self.names = [[field.name for field in side] for side in (left, right)]
        self.given = [
            [f"{prefix}{name}" for name in names] for prefix, names in zip(PREFIXES, self.names, strict=True)
        ]
        self.freezers = [[make_freezer(field.type) for field in side] for side in (left, right)]
        prefixed = [Field(f"left_{each.name}", each.type) for each in left]
        prefixed += [Field(f"right_{each.name}", each.type) for each in right]
        self.kept = BothSides(prefixed, len(left))

    def row(self, state: Values | None, row: Row, out: Call) -> Values:
        """Keep a row."""
        side, columns = bool(row[RIGHT]), [*(state or ((),) * len(self.kept.fields))]
        first = len(self.names[0]) if side else 0
        for at, (name, freeze) in enumerate(zip(self.given[side], self.freezers[side], strict=True), first):
            columns[at] = add_value(columns[at], freeze(row[name]))
        return self.kept.make(columns)

    def end(self, state: Values, at: datetime, out: Call) -> None:
        """Give all rows to the class."""
        lefts, rights = (list(self.list_rows(state, side)) for side in (0, 1))
        first, names = (lefts[0], self.keys) if lefts else (rights[0], self.keys.values())
        key = {name: first[own] for name, own in zip(self.keys, names, strict=True)}
        self.made.group(key, lefts, rights, out)

    def list_rows(self, state: Values, side: int) -> Iterator[Mapping[str, Any]]:
        """List the rows of a side."""
        first, names = len(self.names[0]) if side else 0, self.names[side]
        columns = (join_values(each) for each in state[first : first + len(names)])
        return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def load_group(
    name: str, keys: Mapping[str, str], left: Sequence[Field], right: Sequence[Field]
) -> LoadedFunction:
    """Find a class by ``module:class``, as a function of both sides' rows; DefinitionError where it is none.

    ``keys`` are the right columns of the key by the names of the left ones; both sides have their own.
    """
    found: Any = class_of(name)
    lacking = [each for each in ("emits", "group") if not hasattr(found, each)]
    if lacking:
        raise DefinitionError(
            f"{name!r} has no {', '.join(lacking)}.",
            hint='it has emits = "n BIGINT", and a method group(self, key, lefts, rights, out).',
        )
    require_method(f"{name}.group", found.group, ("key", "lefts", "rights", "out"))
    rows = GroupedRows(make_instance(name, found), keys, left, right)
    return LoadedFunction(
        name,
        rows,
        class_hash(found, private=True),
        rows.kept,
        load_forms(name, found),
        has_end=True,
        user=found,
        last_call="group",
    )
