"""The audits table: what every audit found."""

from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.audit import Audit
from seamline.plan.wording.audit_text import audit_of, serialize_audit

SCHEMA = pa.schema(
    [
        ("at", INSTANT),
        ("epoch", pa.int64()),
        ("passed", pa.bool_()),
        ("actor", pa.string()),
        ("row", pa.string()),
    ]
)


class Audits:
    """Append-only; ``row`` is the whole audit as JSON."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @classmethod
    def ensure(cls, layout: Layout) -> Audits:
        """Open the audits; create them if missing."""
        return cls(Table.ensure(layout.table("audits"), SCHEMA))

    def append(self, audit: Audit) -> None:
        """Append an audit."""
        row = {"at": audit.at, "epoch": audit.epoch, "passed": audit.passed, "actor": audit.actor}
        rows = pa.Table.from_pylist([{**row, "row": json.dumps(serialize_audit(audit))}], schema=SCHEMA)
        self.table.append([data_files.write_data_file(rows, self.table.root, f"{uuid.uuid4().hex}.parquet")])

    def newest(self, count: int = 1) -> list[Audit]:
        """Return the last audits, the newest first; the files' statistics tell which rows are read."""
        table = self.table.refresh()
        since = Files.of(table).find_bound("at", count)
        if since is None:
            ends = table.read(["at"])["at"].to_pylist()
            since = min(sorted(ends)[-count:], default=None)
        reached = pc.field("at") >= pa.scalar(since, INSTANT)
        found = table.handle.to_pyarrow_dataset().to_table(["at", "row"], filter=reached)
        newest = found.sort_by([("at", "descending")]).slice(0, count)
        return [audit_of(json.loads(text)) for text in newest["row"].to_pylist()]


def audits_of(layout: Layout, count: int = 1) -> list[Audit]:
    """Return the last audits, the newest first; none if there is no table, which is not made for it."""
    return Audits.ensure(layout).newest(count) if Table.exists(layout.table("audits")) else []
