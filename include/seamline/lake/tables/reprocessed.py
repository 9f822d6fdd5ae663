"""Records validated again: rows of a record version that did not read them, beside the master, which stays as it is.

Two tables for a record version. ``rows`` has the master's columns and, for records refused, why; it is partitioned
by the attempt that wrote it. ``verdicts`` has a row for each epoch; its commit, conditional on what was read, is
what makes an attempt's rows count. Rows of other attempts are dead.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.epoch_log import each_epoch, known_epochs, read_condensed_log
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import QUARANTINE, master_schema
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.store.locations import Location
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import is_epoch_committed
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.evolution import AND, ANEW
from seamline.model.errors import Conflict
from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.reached_intervals import find_spanning_views
from seamline.plan.batch.crossed_cuts import cuts_within
from seamline.plan.batch.reprocessing_plan import (
    Verdict,
    apply_verdicts,
    complete_births,
    drop_foreign_watermarks,
    find_birth_marks,
    list_open_births,
    plan_raised_floors,
)

APP = "seamline.rejudged"
ATTEMPT, REASON, DETAIL = "attempt", "_reason", "_detail"
EPOCHS = "_epochs"
"""File in an attempt's folder: the numbers of the epochs that it is about."""
SCHEMA = pa.schema([("epoch", pa.int64()), ("attempt", pa.string()), ("verdict", pa.string())])


def rows_schema(pipeline: CompiledPipeline) -> pa.Schema:
    """Return the columns of validated records without ``attempt``; of refused ones those of the parse are NULL."""
    return pa.schema([*master_schema(pipeline), QUARANTINE.field(REASON), QUARANTINE.field(DETAIL)])


class Reprocessed:
    """What was validated again by a pipeline's record version."""

    def __init__(self, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.pipeline, self.layout = pipeline, layout
        version = pipeline.record_version
        self.hash = version.partition(AND)[0] + ("-exact" if ANEW in version else "")

    def rows(self) -> Table:
        """Open the rows, made if they are not there; columns that they lack are added."""
        schema = pa.schema([*rows_schema(self.pipeline), pa.field(ATTEMPT, pa.string())])
        root = self.layout.records(self.hash) / "rows"
        return Table.ensure(root, schema, partition_by=[ATTEMPT]).widen(schema)

    def begin(self, attempt: str, epochs: Iterable[int]) -> Location:
        """Make the folder of an attempt at some epochs; return that of the table, below which its files go."""
        root = self.rows().root
        (root / f"{ATTEMPT}={attempt}").mkdir()
        (root / f"{ATTEMPT}={attempt}" / EPOCHS).write_text("\n".join(map(str, epochs)))
        return root

    def verdicts(self) -> Mapping[int, Verdict]:
        """Return the verdict on every epoch that was validated again."""
        return read_version_verdicts(self.layout.records(self.hash))

    def files(self) -> Files | None:
        """List the files of the rows that count; None if nothing was validated again."""
        attempts = {each.attempt for each in self.verdicts().values()}
        found = read_cached_table(self.layout.records(self.hash) / "rows", "files", Files.of)
        if found is None or not attempts or not found.actions.num_rows:
            return None
        return found.keep(pc.is_in(found.partition(ATTEMPT).cast(pa.string()), pa.array(sorted(attempts))))

    def commit(self, written: Sequence[DataFile], verdicts: Sequence[Verdict]) -> None:
        """Let an attempt's rows count; Conflict if an epoch of them has a verdict, or was lost, by now."""
        if written:
            self.rows().append(written)
        table = Table.ensure(self.layout.records(self.hash) / "verdicts", SCHEMA)
        newest = max((each.epoch for each in verdicts), default=NOTHING)
        rows = [
            {"epoch": each.epoch, "attempt": each.attempt, "verdict": json.dumps(vars(each))}
            for each in verdicts
        ]

        def once() -> None:
            table.refresh()
            if newest > NOTHING and not is_epoch_committed(self.layout, newest):
                raise Conflict(
                    f"Epoch {newest} was lost in the meantime.",
                    hint="its records are read again; check which epochs the log contains.",
                )
            if known := read_all_verdicts(table).keys() & {each.epoch for each in verdicts}:
                raise Conflict(
                    f"Another run has reprocessed epoch {min(known)} in the meantime.",
                    hint="the rows that it wrote count; read those.",
                )
            name = f"{uuid.uuid4().hex}.parquet"
            file = data_files.write_data_file(
                pa.Table.from_pylist(rows, schema=SCHEMA), table.root, name, stats=["epoch"]
            )
            table.append([file], txns={APP: table.version + 1})

        retry_overtaken(once, attempts=None)


def read_version_verdicts(folder: Location) -> Mapping[int, Verdict]:
    """Read the verdicts of a record version by the folder of its tables."""
    return read_cached_table(folder / "verdicts", "all", read_all_verdicts) or {}


def read_all_verdicts(table: Table) -> dict[int, Verdict]:
    """Read every verdict."""
    return {each.epoch: each for each in map(parse_verdict, table.read(["verdict"])["verdict"].to_pylist())}


def parse_verdict(text: str) -> Verdict:
    """Parse one verdict."""
    return Verdict(**json.loads(text))


def read_reprocessed_log(
    pipeline: CompiledPipeline, layout: Layout, *, cuts: Iterable[int] = ()
) -> list[Epoch]:
    """Read the log condensed, split at ``cuts``, as the pipeline's record version validates it where that was done.

    If any epochs were validated again, all are read one by one: a sum over them says what they were before.
    """
    # The verdicts are read first: those on an epoch come after it.
    verdicts = Reprocessed(pipeline, layout).verdicts()
    if not verdicts:
        return list(drop_foreign_watermarks(read_condensed_log(layout, cuts=cuts), pipeline.timed))
    return condense_epochs(each_of(pipeline, layout, verdicts), cuts)


def read_reprocessed_epochs(pipeline: CompiledPipeline, layout: Layout) -> Iterator[Epoch]:
    """Read every epoch as the pipeline's record version validates it, where that was done."""
    return each_of(pipeline, layout, Reprocessed(pipeline, layout).verdicts())


def each_of(pipeline: CompiledPipeline, layout: Layout, verdicts: Mapping[int, Verdict]) -> Iterator[Epoch]:
    """Return every epoch by its verdict, where it has one, and the watermarks that are of the pipeline's clock."""
    # By their own record versions: a verdict puts the pipeline's in their place.
    return apply_verdicts(
        drop_foreign_watermarks(each_epoch(layout), pipeline.timed), pipeline.record_version, verdicts
    )


def read_split_log(
    pipeline: CompiledPipeline, layout: Layout, manifest: Manifest, views: Collection[CompiledView]
) -> list[Epoch]:
    """Read the log condensed, split where what a view's interval is made of has rows on both sides of its cut."""
    cuts: set[int] = set()
    ids, derived = [view.id for view in views], [view for view in views if view.derived]
    while True:
        found = read_reprocessed_log(pipeline, layout, cuts=cuts)
        # What came in the meantime may lie on the other side of another cut.
        if not (more := cuts_within(found, manifest, ids, pipeline.grid, derived)):
            return found
        cuts |= more


def log_beside(layout: Layout, verdicts: Mapping[int, Verdict]) -> Sequence[Epoch]:
    """Return the log to stand beside verdicts: condensed where there are none, else each epoch."""
    return known_epochs(layout) if verdicts else read_condensed_log(layout)


def raise_floors(pipeline: CompiledPipeline, layout: Layout, views: Sequence[CompiledView]) -> None:
    """Let intervals that got rows of before the views' birth be built before they are answered, and no others."""
    verdicts, grid = Reprocessed(pipeline, layout).verdicts(), pipeline.grid
    wanted, spanning = [view.id for view in views], find_spanning_views(grid, views)

    def decision(manifest: Manifest) -> list[Statement]:
        now, unknown = datetime.now(UTC), list_open_births(manifest, wanted)
        cuts = {manifest.births[each] - 1 for each in [*unknown, *spanning] if each in manifest.births}
        log = read_reprocessed_log(pipeline, layout, cuts=cuts) if cuts else []
        known = complete_births(manifest, unknown, log, pipeline.record_version, grid, spanning, now=now)
        marks = find_birth_marks(log, manifest.births, spanning)
        return [*known, *plan_raised_floors(manifest, wanted, verdicts, grid, spanning, marks, now=now)]

    ManifestTable.ensure(layout).decide(decision)
