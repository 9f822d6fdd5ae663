"""Importing rows of files: registered, read piece by piece between the epochs of the live stream, and closed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from seamline.lake.imports.history_records import UNREADABLE
from seamline.lake.imports.import_plans import (
    ImportPlan,
    delete_unused_stages,
    load_plan,
    require_planned_files,
    save_hindrances,
)
from seamline.lake.storage.layout import Layout
from seamline.model.errors import BadRange, FenceLost, SeamlineError
from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import keep_hole_epochs
from seamline.model.protocol.imported.imports import (
    Import,
    find_taken_places,
    list_importable_ranges,
    list_imports_to_register,
    list_open_imports,
    list_ranges_to_close,
)
from seamline.model.protocol.offsets import IMPORTED, Lane, OffsetRange, Vector
from seamline.plan.stream.import_plan import list_taken_rows
from seamline.spark.session.attempt_notes import Attempted
from seamline.spark.stream.driver_end import TRIED_AGAIN
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.hole_filling import PIECE, Filler
from seamline.spark.stream.imports.amending import Amending
from seamline.spark.tasks.history_frames import NUMBER, cut_into_runs, make_reader
from seamline.spark.tasks.kernel_attempts import find_worker_message
from seamline.spark.tasks.spread import count_task_slots

log = logging.getLogger("seamline.stream")
LOOK_AGAIN = 30.0
"""Seconds until what cannot be read is looked at again."""
LARGE_PIECE = 1_000_000
"""Rows of a piece for which no live stream waits."""
FIRST_PIECE = 50_000
"""Rows of the first piece beside a live stream: nobody knows yet how long they take."""
PIECE_SECONDS = 0.5
"""How long a piece may take beside a live stream, whose records wait for it."""


@dataclass(frozen=True)
class Waiting:
    """An import whose files cannot be read."""

    error: SeamlineError
    """Why."""
    until: float
    """When it is tried again, by the monotonic clock, in seconds."""


class PlannedRows:
    """The rows of imports, by their plans."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.load = lru_cache(4)(self.load_plan)
        self.lanes: tuple[Lane, ...] = ()

    def load_plan(self, lane: Lane) -> ImportPlan:
        """Load the plan of an import; NotFound."""
        return load_plan(self.layout, lane.topic_id.removeprefix(IMPORTED))

    def fetch_beginnings(self) -> Vector:
        """Return that all rows of the imports are there."""
        return dict.fromkeys(self.lanes, 0)

    def require_there(self, part: OffsetRange) -> None:
        """Raise BadRange if a file of a part is not the one that was planned."""
        require_planned_files(self.load(part.lane), part.start, part.end)

    def open_range(self, spark: SparkSession, part: OffsetRange) -> tuple[DataFrame, Amending]:
        """Open a part of an import as numbers of runs of rows, which the kernel's tasks read themselves."""
        plan = self.load(part.lane)
        runs = cut_into_runs(plan, part, count_task_slots(spark))
        ids = {plan.options.topic: part.lane.topic_id}
        read = make_reader(runs, plan)
        frame = spark.range(0, len(runs), 1, len(runs)).toDF(NUMBER)
        return frame, Amending(EpochKind.IMPORT, ids, plan.options.until, read)

    def find_fault(self, error: Exception) -> SeamlineError | None:
        """Return what is wrong with a file that a task could not read."""
        said = find_worker_message(error)
        if UNREADABLE not in said:
            return None
        return BadRange(
            said[said.index(UNREADABLE) :].splitlines()[0],
            hint="mend the file or the column, or give the rest up by `seamline imports cancel`.",
        )


class Importer:
    """Imports what people have asked for, a step at a time; what cannot be read stops no live stream.

    ``alone`` says that no live stream waits for its pieces.
    """

    def __init__(self, epochs: Epochs, ledger: Sequence[Epoch], folder: Path, *, alone: bool = False) -> None:
        self.epochs, self.alone = epochs, alone
        self.rows = PlannedRows(epochs.writer.layout)
        self.filler = Filler(
            epochs, ledger, Attempted(folder / "import.json"), self.rows, most=LARGE_PIECE if alone else PIECE
        )
        if not alone:
            self.filler.size = min(self.filler.size, FIRST_PIECE)
        self.asked: tuple[Import, ...] = ()
        self.unsure = False
        self.wrong: dict[Lane, Waiting] = {}

    @property
    def known(self) -> Sequence[Epoch]:
        """Return the epochs that show what of imports is registered, read and closed."""
        return self.filler.known

    @property
    def pending(self) -> bool:
        """Return whether something is to be registered, read or closed."""
        return bool(list_open_imports(self.known, self.asked))

    @property
    def halted(self) -> SeamlineError | None:
        """Return what is wrong with the files of an import, if nothing can be done but to wait for these."""
        busy = list_imports_to_register(self.known, self.asked) or list_ranges_to_close(
            self.known, self.asked
        )
        waiting = [each.error for each in self.wrong.values()]
        return None if busy or self.list_readable_ranges() or not waiting else waiting[0]

    def list_readable_ranges(self) -> list[OffsetRange]:
        """List what is to be read of imports whose files are not waited for, the oldest first."""
        now = time.monotonic()
        return [
            part
            for part in list_importable_ranges(self.known, self.asked)
            if part.lane not in self.wrong or self.wrong[part.lane].until <= now
        ]

    def work(self, spark: SparkSession, asked: tuple[Import, ...]) -> None:
        """Do the next step; the caller sees to it that no other epoch is made meanwhile."""
        self.asked = asked
        if not (asked and self.pending):
            return
        if self.filler.unclear:
            self.try_piece(spark, self.filler.unclear)
            return
        if self.unsure or self.filler.doubtful:
            self.filler.known = keep_hole_epochs(self.epochs.reload_log())
            self.filler.asked, self.filler.doubtful, self.unsure = (), False, False
        if waiting := list_imports_to_register(self.known, asked):
            self.register(waiting[0])
        elif closing := list_ranges_to_close(self.known, asked):
            self.close(*closing[0])
        elif ranges := self.list_readable_ranges():
            self.try_piece(spark, ranges[0])

    def try_piece(self, spark: SparkSession, part: OffsetRange) -> None:
        """Read the next piece of an import; where its files are wrong that is said, and others go before it."""
        try:
            self.import_piece(spark, part)
        except (FenceLost, *TRIED_AGAIN):
            raise
        except SeamlineError as error:
            self.note_wrong(part.lane, error)
        else:
            self.note_wrong(part.lane, None)

    def import_piece(self, spark: SparkSession, part: OffsetRange) -> None:
        """Read the next piece of an import."""
        self.rows.lanes = (part.lane,)
        self.filler.request([replace(part, start=0)])
        began, size = time.monotonic(), self.filler.size
        self.filler.fill_step(spark)
        if not self.alone and self.filler.size >= size:
            took = max(time.monotonic() - began, 0.01)
            self.filler.size = min(self.filler.size, max(int(size * PIECE_SECONDS / took), 1_000))
        if not self.pending:
            log.info("Everything that was asked for is imported")
            self.delete_stages()

    def register(self, each: Import) -> None:
        """Commit the epoch that says what is to be imported, before anything of it is."""
        log.info("Importing %s rows of %s", each.end, each.origin)
        said = f"import of {each.origin}, {each.actor}: {each.reason}".removesuffix(": ")
        self.commit(
            kind=EpochKind.HOLE, ranges=(each.range,), reason=said, bounds=each.bounds, until=each.until
        )

    def close(self, each: Import, part: OffsetRange) -> None:
        """Commit the epoch that says that the rest of an import is not read."""
        log.warning(
            "The import of %s is cancelled from row %s on: %s", each.origin, part.start, each.cancelled
        )
        self.commit(kind=EpochKind.AMEND, ranges=(part,), reason=f"import cancelled, {each.cancelled}")
        self.delete_stages()

    def commit(self, **stated: object) -> None:
        """Commit an epoch without rows; whether it landed is unknown until it is followed by another."""
        self.unsure = True
        self.epochs.commit_empty(**stated)
        last = self.epochs.progress.epoch
        self.filler.known = condense_epochs([*self.known, *([last] if last else [])])
        # What was asked for is listed again.
        self.filler.asked, self.unsure = (), False

    def delete_stages(self) -> None:
        """Delete staged rows that no import reads any more; those of Delta tables that were not read whole stay."""
        try:
            plans = {each.id: self.rows.load(each.lane) for each in self.asked}
            open_ = {each.id for each in list_open_imports(self.known, self.asked)}
            rows = list_taken_rows(
                {id: plan.files for id, plan in plans.items()},
                {id: count for id, count in find_taken_places(self.known, self.asked).items() if id in plans},
            )
            used = [
                each.file
                for id, plan in plans.items()
                for each in plan.files
                if id in open_ or (plan.table_id and rows.get(each.file.identity, 0) < each.file.rows)
            ]
            delete_unused_stages(
                self.rows.layout, used, [plan for id, plan in plans.items() if id not in open_]
            )
        except (SeamlineError, OSError) as error:
            log.warning("Staged rows were not deleted: %s", error)

    def note_wrong(self, lane: Lane, error: SeamlineError | None) -> None:
        """Note why an import waits, or that it goes on, where whoever lists the imports finds it."""
        known = lane in self.wrong
        if error:
            self.wrong[lane] = Waiting(error, time.monotonic() + LOOK_AGAIN)
            log.error("An import cannot go on: %s %s", error.message, error.hint)
        else:
            self.wrong.pop(lane, None)
        if known or error:
            told = {each.topic_id.removeprefix(IMPORTED): why.error for each, why in self.wrong.items()}
            save_hindrances(
                self.rows.layout, {id: f"{why.message} Hint: {why.hint}" for id, why in told.items()}
            )
