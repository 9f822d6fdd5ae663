"""The ledger: one row per epoch, repaired from the master when it is short."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow.compute as pc

from seamline.lake.log.ledger_files import groups_of
from seamline.lake.log.ledger_summaries import SCHEMA, write_ledger_file
from seamline.lake.storage.data_files import DataFile, name_epoch_file
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.model.protocol.epoch import Epoch


class Ledger:
    """What every epoch read, accepted and refused; ``row`` is the whole of it as JSON."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> Ledger:
        """Open the ledger; create it if missing."""
        return cls(Table.ensure(layout.table("ledger"), SCHEMA))

    @classmethod
    def exists(cls, layout: Layout) -> bool:
        """Return whether there is a ledger."""
        return Table.exists(layout.table("ledger"))

    def append(self, epochs: list[Epoch]) -> None:
        """Append rows for committed epochs, in one commit."""
        if epochs:
            self.append_file(epochs, self.write_file(epochs))

    def write_file(self, epochs: list[Epoch]) -> DataFile:
        """Write the file of some rows, in order, which no commit names yet: their epochs may still fail."""
        name = name_epoch_file(self.table.token, epochs[0].number, epochs[-1].number)
        return write_ledger_file(epochs, self.table.root, name)

    def append_file(self, epochs: list[Epoch], written: DataFile) -> None:
        """Commit the file of rows for epochs that are committed."""
        self.table.append([written], txns={EPOCH: epochs[-1].number})

    @property
    def last(self) -> int:
        """The last epoch that it has a row of, -1 for none; an earlier one may be missing."""
        return max((group.last for group in groups_of(self.table)), default=-1)

    def read(self) -> list[Epoch]:
        """Read every row, in order; a row that was written twice is given once."""
        found = {epoch.number: epoch for epoch in map(Epoch.from_json, self._texts())}
        return [found[number] for number in sorted(found)]

    def read_after(self, number: int, until: int | None = None) -> list[Epoch]:
        """Read the rows above an epoch, up to another, in order; files that end below it are not opened."""
        wanted = pc.field("epoch") > number
        if until is not None:
            wanted &= pc.field("epoch") <= until
        found = self.table.handle.to_pyarrow_dataset().to_table(["row"], filter=wanted)
        epochs = {epoch.number: epoch for epoch in map(Epoch.from_json, found["row"].to_pylist())}
        return [epochs[each] for each in sorted(epochs)]

    def read_some(self, numbers: Collection[int]) -> dict[int, Epoch]:
        """Read the rows of some epochs, by their numbers; those that there are none of are left out."""
        if not numbers:
            return {}
        wanted = pc.field("epoch").isin([*numbers])
        found = self.table.handle.to_pyarrow_dataset().to_table(["row"], filter=wanted)
        return {epoch.number: epoch for epoch in map(Epoch.from_json, found["row"].to_pylist())}

    def read_sizes(self, after: int, most: int) -> dict[int, int]:
        """Read the rows of the first ``most`` epochs above one, by their numbers in order."""
        wanted = pc.field("epoch") > after
        found = self.table.handle.to_pyarrow_dataset().to_table(["epoch", "rows"], filter=wanted)
        first = found.sort_by("epoch").slice(0, most)
        return dict(zip(first["epoch"].to_pylist(), first["rows"].to_pylist(), strict=True))

    def _texts(self) -> list[str]:
        texts: list[str] = self.table.read(["row"])["row"].to_pylist()
        return texts
