"""The slices of a view version: partial states per key and pane, one set per epoch."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import late_names, slices_schema
from seamline.lake.storage.data_files import name_epoch_file
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.stored_panes import pane_length_mark
from seamline.model.compile.compiled_pipeline import CompiledView

PRUNES = ("pane", "from_epoch", "to_epoch")


class Slices:
    """Speed-layer rows; written before their epochs are committed, read only after."""

    def __init__(self, table: Table, view: CompiledView) -> None:
        self.table = table
        self.view = view

    @classmethod
    def ensure(cls, layout: Layout, view: CompiledView) -> Slices:
        """Open the slices of a view version; create them if missing."""
        schema = slices_schema(view)
        table = Table.ensure(layout.slices(view), schema, txns=pane_length_mark(view))
        return cls(table.holding(schema, late=late_names(view)), view)

    def append(self, partials: pa.Table, *, from_epoch: int, to_epoch: int) -> None:
        """Write the partial states (``partial_schema``) of one epoch, or of a block for a catch-up.

        An epoch without states still leaves its number, so that no later attempt takes it.
        """
        self.table.append(self._files(partials, from_epoch, to_epoch), txns={EPOCH: to_epoch})

    def _files(self, partials: pa.Table, from_epoch: int, to_epoch: int) -> Iterable[data_files.DataFile]:
        if not partials.num_rows:
            return []
        count = partials.num_rows
        whole = partials.append_column("from_epoch", pa.array([from_epoch] * count, pa.int64()))
        whole = whole.append_column("to_epoch", pa.array([to_epoch] * count, pa.int64()))
        name = name_epoch_file(self.table.token, from_epoch, to_epoch)
        return [
            data_files.write_data_file(
                whole.cast(slices_schema(self.view)), self.table.root, name, stats=PRUNES
            )
        ]
