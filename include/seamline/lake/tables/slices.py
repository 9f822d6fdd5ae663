"""The slices of a view version: partial states per key and pane, one set per epoch."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from seamline.lake.storage.arrow_types import late_names, slices_schema
from seamline.lake.storage.data_files import DataFile, name_epoch_file, write_data_file
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
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
        made = write_slice_file(
            partials, self.view, self.table.root, self.table.token, from_epoch=from_epoch, to_epoch=to_epoch
        )
        self.append_files(made, to_epoch=to_epoch)

    def append_files(self, made: Sequence[DataFile], *, to_epoch: int) -> None:
        """Commit files of one epoch, or of a block for a catch-up."""
        self.table.append(made, txns={EPOCH: to_epoch})


def write_slice_file(
    partials: pa.Table,
    view: CompiledView,
    root: Location,
    token: int | None,
    *,
    from_epoch: int,
    to_epoch: int,
) -> list[DataFile]:
    """Write partial states (``partial_schema``) as a file of slices, which no commit names yet; none for no rows."""
    if not partials.num_rows:
        return []
    count = partials.num_rows
    whole = partials.append_column("from_epoch", pa.repeat(pa.scalar(from_epoch, pa.int64()), count))
    whole = whole.append_column("to_epoch", pa.repeat(pa.scalar(to_epoch, pa.int64()), count))
    name = name_epoch_file(token, from_epoch, to_epoch)
    return [write_data_file(whole.cast(slices_schema(view)), root, name, stats=PRUNES)]
