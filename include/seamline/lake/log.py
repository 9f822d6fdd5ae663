"""The log: every epoch that the master holds."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.lake.layout import Layout
from seamline.lake.ledger import Ledger
from seamline.lake.master import Master
from seamline.lake.tables import Table
from seamline.model.epoch import Epoch


def known_epochs(layout: Layout) -> Sequence[Epoch]:
    """List every epoch that the master holds, also those that the ledger misses; none before the first."""
    if not Table.exists(layout.table("master")):
        return []
    held = Ledger.ensure(layout).epochs()
    last = held[-1].number if held else -1
    # The master is opened after the ledger was read: an epoch in between is found in one of the two.
    return [*held, *Master.open(layout).missing(last)]
