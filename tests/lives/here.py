"""Spark's place taken by this process: what the jobs ask of Spark, done in the caller's thread on Arrow tables.

The kernel, the partial states of a build and the judging of records again are the shipped ones: they run in Spark's
tasks on Arrow batches, and know no difference. What Spark itself computes has an equal here: the slices of a catch-up,
and the raw records of a judging again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from tests.lives.builds import sparkless_builds
from tests.lives.copies import sparkless_copies
from tests.lives.derived.dated import derive_changes
from tests.lives.derived.joined import derive_missing, sparkless_joins
from tests.lives.frames import Frame

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.arrow_types import COORDINATES, master_schema, partial_schema, slices_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SELECTED
from seamline.model.protocol.epoch import Epoch
from seamline.plan.batch import work_shares
from seamline.plan.stream import epoch_parts
from seamline.spark.build import fast_path, repeated_ids, reprocessing, spilled_states
from seamline.spark.stream import catch_up, decisions, driver_loop
from seamline.spark.stream.epoch_writer import Writer

SMALL = {
    (work_shares, "LEAST"): 1,
    (work_shares, "IN_A_PART"): 3,
    (fast_path, "REPORTED_BYTES"): 200,
    (repeated_ids, "INLINE"): 16,
    (spilled_states, "UNIT_BYTES"): 400,
}
"""Bounds by which a build of a few rows has several tasks, shuffles ids, and keeps states in files."""


@contextmanager
def building_in_parts(*, whole: bool) -> Iterator[None]:
    """Build as large builds are built; with ``whole`` all rows are compared of which an id is there twice."""
    with ExitStack() as stack:
        for (module, name), bound in {
            **SMALL,
            **({(repeated_ids, "MOST_TWICE"): 0} if whole else {}),
        }.items():
            stack.enter_context(patch.object(module, name, bound))
        yield


def computed(_: object, writer: Writer, slices: Slices, *, after: int, until: int) -> pa.Table:
    """Compute what a catch-up adds, epoch by epoch, by the kernel's SQL over the master."""
    if slices.view.revised:
        found = derive_changes(writer.pipeline, writer.layout, slices.view, after=after, until=until)
        return catch_up.name_epochs(found, slices.view, pa.scalar(after + 1), pa.scalar(until))
    if slices.view.join:
        found = derive_missing(writer.pipeline, writer.layout, slices.view, after=after, until=until)
        return as_slices(slices, found)
    rows = aligned(writer.pipeline, DeltaTable(str(writer.master.table.root)).to_pyarrow_table())
    if writer.pipeline.record.selective:
        rows = rows.filter(rows[SELECTED])
    epochs = rows["_epoch"]
    rows = rows.filter(pc.and_(pc.greater(epochs, after), pc.less_equal(epochs, until)))
    with open_duckdb() as con:
        con.register("held_rows", rows)
        found = states.compute_row_states(con, slices.view, "held_rows", by=["_epoch"])
    return as_slices(slices, found)


def as_slices(slices: Slices, found: pa.Table) -> pa.Table:
    """Return states by epoch as rows of slices."""
    numbers = found["_epoch"]
    schema = slices_schema(slices.view)
    whole = found.select(partial_schema(slices.view).names)
    whole = whole.append_column("from_epoch", numbers).append_column("to_epoch", numbers)
    return whole.select(schema.names).cast(schema)


def aligned(pipeline: CompiledPipeline, rows: pa.Table) -> pa.Table:
    """Return rows the columns of a definition, whatever else is there."""
    blank = master_schema(pipeline).empty_table()
    return pa.concat_tables([blank, rows], promote_options="permissive")


def raw_records(_: object, __: object, layout: Layout, block: Sequence[Epoch]) -> Frame:
    """Return the coordinates and bytes of all that some epochs read, accepted or refused."""
    numbers = pa.array([epoch.number for epoch in block], pa.int64())
    parts = []
    for name in ("master", "quarantine"):
        rows = DeltaTable(str(layout.table(name))).to_pyarrow_table(columns=COORDINATES.names)
        parts.append(
            rows.filter(pc.is_in(rows["_epoch"], numbers)).select(COORDINATES.names).cast(COORDINATES)
        )
    return Frame(pa.concat_tables(parts))


@contextmanager
def sparkless(topics: Callable[..., object], *, parted: bool) -> Iterator[None]:
    """Run drivers and builds without Spark and Kafka; ``topics`` stands in the place of ``Topics``.

    Where they are ``parted``, all epochs go through parts; else none does.
    """
    with (
        patch.object(catch_up, "compute_missing_slices", computed),
        patch.object(reprocessing, "raw_records", raw_records),
        patch.object(epoch_parts, "LEAST_STATES", 0 if parted else 2**62),
        patch.object(decisions, "Topics", topics),
        patch.object(driver_loop, "warm_workers", lambda _: None),
        patch.object(driver_loop, "jvm_pid", lambda _: None),
        # A table that has changed is seen by the next epoch.
        patch.dict(Lookups.__init__.__kwdefaults__, every=0.0),
        sparkless_joins(),
        sparkless_builds(),
        sparkless_copies(),
    ):
        yield
