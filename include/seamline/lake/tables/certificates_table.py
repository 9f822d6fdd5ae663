"""The certificates table: the proof of every generation that was ever offered, passed or not."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.protocol.certificate_checks import Certificate

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("view", pa.string()),
        ("interval", pa.string()),
        ("generation", pa.string()),
        ("cut", pa.int64()),
        ("passed", pa.bool_()),
        ("at", INSTANT),
        ("row", pa.string()),
    ]
)


class Certificates:
    """Append-only; ``row`` is the whole certificate as JSON."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> Certificates:
        """Open the certificates; create them if missing."""
        return cls(Table.ensure(layout.table("certificates"), SCHEMA))

    def append(self, certificates: Sequence[Certificate]) -> None:
        """Add the certificates of a run in one commit."""
        if certificates:
            rows = pa.Table.from_pylist([flatten_certificate(each) for each in certificates], schema=SCHEMA)
            name = f"{uuid.uuid4().hex}.parquet"
            self.table.append([data_files.write_data_file(rows, self.table.root, name)])

    def of(self, *, run: str = "", view: str = "", interval: str = "") -> list[Certificate]:
        """List the certificates of a run, of a view (``name/fingerprint``), of an interval; oldest first."""
        given = {
            name: value for name, value in (("run", run), ("view", view), ("interval", interval)) if value
        }
        clauses = [pc.field(name) == value for name, value in given.items()]
        return self.read_where(reduce(and_, clauses) if clauses else None)

    def of_intervals(self, intervals: Collection[str]) -> list[Certificate]:
        """List the certificates of some intervals, oldest first; of many, one look at the table is enough."""
        named = pc.field("interval")
        # Files are left out by bounds alone, not by lists.
        bounded = (named >= min(intervals)) & (named <= max(intervals))
        return self.read_where(bounded & named.isin([*intervals]))

    def read_where(self, condition: pc.Expression | None) -> list[Certificate]:
        """List the certificates that meet a condition, all if None; oldest first."""
        dataset = self.table.refresh().handle.to_pyarrow_dataset()
        rows = dataset.to_table(columns=["at", "row"], filter=condition).to_pylist()
        ordered: list[tuple[datetime, str]] = sorted((row["at"], row["row"]) for row in rows)
        return [Certificate.from_json(text) for _, text in ordered]


def list_red_intervals(layout: Layout) -> frozenset[tuple[str, str]]:
    """List the intervals, by view (``name/fingerprint``) and id, whose newest certificate is red."""
    found = read_cached_table(layout.table("certificates"), "red", find_red_intervals)
    return found or frozenset()


def find_red_intervals(table: Table) -> frozenset[tuple[str, str]]:
    """Find them by the columns; a certificate itself is read where one did not pass, for it may be provisional."""
    dataset = table.handle.to_pyarrow_dataset()
    rows = dataset.to_table(columns=["view", "interval", "at", "passed"])
    suspect = pc.unique(rows.filter(pc.invert(rows["passed"]))["interval"])
    rows = rows.filter(pc.is_in(rows["interval"], value_set=suspect))
    newest: dict[tuple[str, str], tuple[datetime, bool]] = {}
    for view, interval, at, passed in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        held = newest.get((view, interval))
        # Of those of one instant the texts tell which is the newest.
        if held is None or at > held[0]:
            newest[view, interval] = at, passed
        elif at == held[0]:
            newest[view, interval] = at, passed and held[1]
    failed = [place for place, (_, passed) in newest.items() if not passed]
    if not failed:
        return frozenset()
    known = dataset.to_table(
        columns=["at", "row"], filter=pc.field("interval").isin([id for _, id in failed])
    )
    texts = [row["row"] for row in sorted(known.to_pylist(), key=lambda row: (row["at"], row["row"]))]
    last = {
        (f"{each.view}/{each.fingerprint}", each.interval.id): each
        for each in map(Certificate.from_json, texts)
    }
    return frozenset(place for place in failed if not last[place].good)


def flatten_certificate(certificate: Certificate) -> dict[str, object]:
    """Spread a certificate over the table's columns."""
    return {
        "run": certificate.run,
        "view": f"{certificate.view}/{certificate.fingerprint}",
        "interval": certificate.interval.id,
        "generation": certificate.generation,
        "cut": certificate.cut,
        "passed": certificate.passed,
        "at": certificate.at,
        "row": certificate.to_json(),
    }
