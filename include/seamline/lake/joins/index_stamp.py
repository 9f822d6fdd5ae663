"""What an index of joined rows says of itself, by which a driver knows whether it may go on with it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import duckdb

from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import format_utc_instant

FORM = f"1 {duckdb.__version__}"
"""How rows are kept: the hash of keys is DuckDB's, which another version may compute in another way."""


@dataclass(frozen=True)
class IndexStamp:
    """Which rows an index, or a file of snapshots, has: those of epochs up to one, made with so many restatements."""

    table: str
    """The master's id."""
    epoch: int
    """The last epoch, inclusive."""
    commit: str
    """Its commit: a master that was brought back from a backup may have had another of that number."""
    record_version: str
    """The record version of the rows."""
    restated: int
    """How many restatements they are made with."""
    horizon: int | None
    """The event time, in microseconds, from which on an index has all rows, None for all; snapshots of tails have those
    before it."""
    form: str = FORM
    """How they are kept."""

    @classmethod
    def of(cls, table: str, epoch: Epoch, horizon: int | None) -> IndexStamp:
        """Stamp an index that has taken in an epoch."""
        commit = f"{epoch.token} {format_utc_instant(epoch.committed_at)}"
        return cls(table, epoch.number, commit, epoch.record_version, epoch.restated, horizon)

    def to_json(self) -> str:
        """Write it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> IndexStamp | None:
        """Read what ``to_json`` wrote; None for anything else, as another release may write."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None
