"""The log from one epoch on, however long it is: files and row groups that end before it are not read."""

from __future__ import annotations

from itertools import chain, islice

from seamline.lake.log.epoch_log import join_ledger_and_master, last_of, list_epochs_above_ledger
from seamline.lake.log.ledger_files import groups_of
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING


def read_newest_epoch(layout: Layout) -> int:
    """Read E; NOTHING before the first epoch."""
    found = read_cached_table(layout.table("master"), "epoch", lambda table: Master(table).epoch)
    return NOTHING if found is None else found


def list_epochs_from(layout: Layout, number: int, most: int) -> list[Epoch]:
    """List the first ``most`` committed epochs from a number on, in order."""
    ledger = layout.table("ledger")

    def read_last(end: int | None) -> list[Epoch]:
        return read_cached_table(ledger, ("newest", 1, end), lambda it: last_of(it, 1, end)) or []

    ends = join_ledger_and_master(read_last, lambda held: list_epochs_above_ledger(layout, held))
    if not ends:
        return []
    groups = read_cached_table(ledger, "groups", groups_of) or ()
    held = chain.from_iterable(group.iterate(number) for group in groups if group.last >= number)
    first = list(islice((each for each in held if each.number <= ends[0].number), most))
    last = first[-1].number if first else number - 1
    return [*first, *(each for each in ends if each.number > last)][:most]
