"""What the ledger says up to a cut, summed up for the certificates of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import is_ledger_contiguous, list_open_holes
from seamline.plan.batch.interval_arrivals import Arrivals


@dataclass(frozen=True)
class Log:
    """What the ledger says up to a cut."""

    is_edge: bool
    """Whether the cut is an edge."""
    watermark: datetime | None
    """As of the cut; None before the first event."""
    contiguous: bool
    """Whether each epoch begins where the one before it ended."""
    holes: Sequence[Epoch]
    """Epochs that stand for offsets that were passed over and not read."""
    arrivals: Arrivals
    """Accepted rows, by interval."""
    joined: Mapping[str, Mapping[str, tuple[str, ...]]]
    """By interval id, the versions of each look-up that rows were read with."""

    @classmethod
    def sum_until(cls, cut: int, ledger: Sequence[Epoch]) -> Log:
        """Sum up the epochs at or below the cut."""
        epochs = [epoch for epoch in ledger if epoch.number <= cut]
        last = epochs[-1] if epochs and epochs[-1].number == cut else None
        return cls(
            is_edge=last is not None and last.edge,
            watermark=last.watermark if last else None,
            contiguous=is_ledger_contiguous(epochs),
            holes=list_open_holes(epochs),
            arrivals=Arrivals(epochs, until=cut),
            joined=lookup_versions_by_interval(epochs),
        )

    def lookups(self, interval: str) -> Mapping[str, tuple[str, ...]]:
        """Return the versions of each look-up that rows of an interval were read with."""
        return self.joined.get(interval, {})


def lookup_versions_by_interval(epochs: Sequence[Epoch]) -> dict[str, dict[str, tuple[str, ...]]]:
    """List by interval the versions of each look-up, in the order they came."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for epoch in epochs:
        for interval in epoch.accepted if epoch.lookups else ():
            mine = found.setdefault(interval, {})
            for name, version in epoch.lookups.items():
                mine.setdefault(name, {})[version] = None
    return {
        interval: {name: tuple(versions) for name, versions in mine.items()}
        for interval, mine in found.items()
    }
