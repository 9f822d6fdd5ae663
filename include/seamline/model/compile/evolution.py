"""Columns that a topic got later, and which record versions have rows that fit each other.

A record version is a hash, and after it the added columns in their order: ``3f1c…+channel STRING``. Two fit if
one goes on where the other ends. Then the rows of both mean the same in the columns that both have, whichever
of the definitions is at hand: the older one may be taken up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.model.compile.problems import Problems
from seamline.model.definition.sources import Source
from seamline.model.errors import DefinitionError, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.types.schema import Field, Schema

AND = "+"
"""What stands before each added column in a record version; no type has it in its spelling."""
ANEW = " exact"
"""What stands behind an added DECIMAL that is read by its own digits, where none of ``schema=`` says so."""


def parse_added_columns(source: Source, base: Schema, problems: Problems) -> tuple[Field, ...]:
    """Read the columns that the topic got after those of ``base``; what is wrong is noted and left out."""
    found = list[Field]()
    for text in source.added:
        field = problems.attempt("source.added", source.origin, lambda text=text: parse_added_column(text))  # type: ignore[misc]
        if field is None:
            continue
        if base.with_(*found).field(field.name):
            problems.note(
                "source.added", source.origin, f"A column {field.name!r} already exists.", "add it once."
            )
        elif field.name in (source.event_time, *source.event_id):
            problems.note(
                "source.added",
                source.origin,
                f"{field.name!r} is in event_time or event_id, but earlier rows do not have it.",
                "declare it in schema=: its rows are another record version.",
            )
        else:
            found.append(field)
    return tuple(found)


def parse_added_column(text: str) -> Field:
    """Read one added column; DefinitionError where it is not one, or not one that may be absent."""
    fields = Schema.parse(text).fields
    if len(fields) > 1:
        raise DefinitionError(
            f"{text!r} declares {len(fields)} columns.", hint="make each an item of the list."
        )
    if not fields[0].nullable:
        raise DefinitionError(
            f"{fields[0].name!r} is NOT NULL, but earlier rows do not have it.",
            hint="remove NOT NULL: missing values are NULL.",
        )
    return fields[0]


def list_used_columns(
    added: Sequence[Field], attempt: Callable[[Sequence[Field], Problems], object]
) -> tuple[Field, ...]:
    """List the added columns without which ``attempt`` has a problem: those that are used there."""
    found = []
    for field in added:
        problems = Problems()
        attempt([each for each in added if each is not field], problems)
        if problems.found:
            found.append(field)
    return tuple(found)


def extend_record_version(hash: str, added: Iterable[Field], *, fresh: bool = False) -> str:
    """Write a record version; ``fresh``: the added columns are the first with exact decimals."""
    return AND.join([hash, *(serialize_added_column(field, fresh=fresh) for field in added)])


def serialize_added_column(field: Field, *, fresh: bool) -> str:
    """Write an added column as record versions name it."""
    return f"{field.name} {field.type}{ANEW if fresh and field.type.decimals else ''}"


def is_compatible_version(one: str, other: str) -> bool:
    """Return whether the rows of two record versions may stand beside each other."""
    return all(a == b for a, b in zip(one.split(AND), other.split(AND), strict=False))


def list_earlier_versions(version: str) -> tuple[str, ...]:
    """List the record versions with the first of its added columns, from none to all of them."""
    parts = version.split(AND)
    return tuple(AND.join(parts[: at + 1]) for at in range(len(parts)))


@dataclass(frozen=True)
class Timed:
    """Return the clock of a definition's event time.

    A watermark is about event times, so those of another clock say nothing here.
    """

    version: str
    """The record version."""
    clock: str
    """The identity of the event time (``fingerprint.event_time_identity``)."""

    def is_of_clock(self, epoch: Epoch) -> bool:
        """Return whether an epoch's event times are of this clock; one that is silent says so by its record version."""
        return (
            epoch.clock == self.clock
            if epoch.clock
            else is_compatible_version(epoch.record_version, self.version)
        )

    def watermark_at(self, epoch: Epoch | None) -> datetime | None:
        """Return the watermark at an epoch, None where it is of another clock."""
        return epoch.watermark if epoch and epoch.watermark and self.is_of_clock(epoch) else None


def require_order(version: str, held: Iterable[Epoch]) -> None:
    """Raise ProtocolError if rows were read with added columns of another type, or in another order."""
    hash, *ours = version.split(AND)
    for epoch in held:
        known, *theirs = epoch.record_version.split(AND)
        columns = version.replace(ANEW, ""), epoch.record_version.replace(ANEW, "")
        if epoch.rows and known == hash and not is_compatible_version(*columns):
            raise ProtocolError(
                f"Epoch {epoch.number} was read with added=[{format_quoted_columns(theirs)}], but the definition says "
                f"added=[{format_quoted_columns(ours)}].",
                hint="keep the earlier columns and types, in their order; add new ones at the end.",
            )


def format_quoted_columns(columns: Iterable[str]) -> str:
    """Write columns as a definition does."""
    return ", ".join(f'"{each}"' for each in columns)
