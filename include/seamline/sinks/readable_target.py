"""What a target is able to do beside what every target is: tell what it holds, let go of rows, write a range anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import pyarrow as pa

from seamline.lake.read.sinks.shown_rows import ShownRows, StartRange
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.target import Target


class Reading(Protocol):
    """A connection that reads what a target holds, and is in nobody's way."""

    def find_position(self) -> SinkPosition | None:
        """Read the position; None where there is none."""

    def read_rows(self, span: StartRange) -> Iterator[pa.Table]:
        """Read rows of windows that start in a range, as HELD has them; others may be among them.

        They are those of the position where that is the same before and after; else some may be older, some newer.
        """

    def read_row(self, row: pa.Table) -> pa.Table | None:
        """Read what is there in the place of one row of the serving table; None if it cannot be asked for one row."""


@runtime_checkable
class PartedReading(Reading, Protocol):
    """A reading of something that is in parts, some of which may be gone."""

    def list_damage(self) -> Mapping[str, str]:
        """List the parts that are not as they were written, each with what is wrong with it, once rows were read."""


@runtime_checkable
class ReadableTarget(Target, Protocol):
    """A target whose rows can be read."""

    def open_reading(self) -> AbstractContextManager[Reading]:
        """Open a connection of its own; who writes the target is not fenced off."""

    def spell_places(self, rows: pa.Table) -> pa.Array:
        """Return what tells rows of the serving table from others, as ``place`` of HELD has it."""

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Return what is written of rows of the serving table, as ``value`` of HELD has it."""


@runtime_checkable
class DeletingTarget(ReadableTarget, Protocol):
    """A target that lets go of rows by what it holds, whatever that is."""

    def delete_held(self, held: pa.Table, position: SinkPosition) -> None:
        """Delete rows that were read, at a position that stays; Fenced."""


@runtime_checkable
class RewritingTarget(Target, Protocol):
    """A target that writes rows of a range anew in place of what it has there, whatever that is."""

    def write_again(self, shown: ShownRows, position: SinkPosition) -> Iterator[tuple[int, SinkPosition]]:
        """Write what a version shows of the range that a position is to be given again, a transaction at a time.

        Gives after each how many rows it had, and the position, the last of which has no range any more. Fenced.
        """
