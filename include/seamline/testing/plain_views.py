"""The rows that views of the dull engine count: of what was accepted, and of what others are derived from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.restatement import Restatement
from seamline.testing.changed import list_change_rows
from seamline.testing.folded import Shown, fold_plain_rows, list_changed_rows
from seamline.testing.input import input_of
from seamline.testing.joined import derive_plain_rows, list_revised_rows
from seamline.testing.oracle import Row
from seamline.testing.validation import Read


class PlainViews(ABC):
    """Makes the input of views of a stream that is kept as lists."""

    con: duckdb.DuckDBPyConnection
    """Where expressions are evaluated."""
    pipeline: CompiledPipeline
    """The definition that runs."""
    epochs: list[Epoch]
    """Committed ones, ascending."""
    restated: list[Restatement]
    """Restatements in the order in which they were decided."""

    @property
    @abstractmethod
    def current(self) -> list[Read]:
        """What the record version has validated."""

    @abstractmethod
    def count_named(self, number: int) -> int:
        """Count the decisions that derived rows of an epoch are made with."""

    @abstractmethod
    def restate_rows(self, read: Read, decisions: Sequence[Restatement]) -> pa.Table:
        """Return an epoch's accepted rows as decisions have them."""

    def all_rows(self, view: CompiledView) -> list[Row]:
        """Return a view's input of all epochs."""
        if view.changelog:
            return self.change_rows(view)
        if view.netted:
            return self.list_changes(view, None)
        if view.join:
            return [
                row
                for known in dict.fromkeys(each.restated for each in self.epochs)
                for row in self.derive_rows(view, known)
                if self.count_named(row.epoch) == known
            ]
        return [
            row for each in self.current for row in input_of(self.con, self.pipeline, view, each.accepted)
        ]

    def derive_rows(self, view: CompiledView, known: int) -> list[Row]:
        """Return a view's input of all epochs, of rows as the first so many restatements have them."""
        if view.changelog:
            return self.change_rows(view)
        if view.netted:
            return self.list_changes(view, known)
        assert view.join
        accepted = [self.restate_rows(each, self.restated[:known]) for each in self.current]
        return input_of(self.con, self.pipeline, view, derive_plain_rows(self.con, view.join, accepted))

    def change_rows(self, view: CompiledView) -> list[Row]:
        """Return the input of a changelog's view of all epochs; no restatement changes it."""
        accepted = [each.accepted for each in self.current]
        return list_change_rows(self.con, self.pipeline, view, accepted)

    def list_changes(self, view: CompiledView, known: int | None) -> list[Row]:
        """Return the same of rows that may be withdrawn; None for the restatements that each epoch names."""
        shown: list[tuple[int, Shown]] = []
        joined: list[tuple[int, pa.Table]] = []
        mark = None
        for epoch in self.epochs:
            decided = self.restated[: epoch.restated if known is None else known]
            read = [each for each in self.current if each.epoch.number <= epoch.number]
            accepted = [self.restate_rows(each, decided) for each in read]
            mark = self.pipeline.timed.watermark_at(epoch) or mark
            if view.process:
                shown.append((epoch.number, fold_plain_rows(self.con, view.process, accepted, mark)))
            elif view.join:
                joined.append((epoch.number, derive_plain_rows(self.con, view.join, accepted)))
        if view.join:
            return [
                replace(row, sign=sign)
                for rows, sign in list_revised_rows(joined)
                for row in input_of(self.con, self.pipeline, view, rows)
            ]
        return list_changed_rows(self.con, self.pipeline, view, shown)
