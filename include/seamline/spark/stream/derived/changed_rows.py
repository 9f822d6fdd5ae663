"""What epochs change in tables, found by the driver, which keeps an index of each table's rows after all changes.

An index stands at E, or is brought there from the master: from the epoch of its stamp on where its file is of the same
log, else from that of the newest snapshot. A view whose changes cannot be found is behind, and is caught up from the
master (rules 6 and 29).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from seamline.kernel.epoch_kernel import isolate_view_failure
from seamline.kernel.joined_rows import list_changelogs, name_side
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine.changed_index import ChangedIndex, changed_schema
from seamline.lake.engine.signed_states import compute_signed_states
from seamline.lake.joins.changed_rows import fill_changed_index
from seamline.lake.joins.index_files import IndexFiles
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.derived.kept_indexes import Kept, KeptIndexes
from seamline.spark.stream.derived.restated_log import RestatedLog
from seamline.spark.stream.derived.saved_images import SavedImages
from seamline.spark.stream.epoch_writer import Writer

log = logging.getLogger("seamline.stream")


class ChangedRows(KeptIndexes[CompiledChangelog, ChangedIndex]):
    """The indexes of a pipeline's changelogs, below ``folder``."""

    restates = False

    def __init__(self, writer: Writer, folder: Path, source: RestatedLog) -> None:
        super().__init__(writer, source, list_changelogs(writer.pipeline.views))
        self.changelogs = self.made
        self.files = IndexFiles(writer, folder, self.made, ChangedIndex, restates=False)
        self.saved = SavedImages(writer, self.made)

    def gather(self, made: CompiledChangelog, result: KernelResult) -> pa.Table:
        schema = changed_schema(made)
        found = result.joined.get(name_side(made, 0), [])
        return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in found)])

    def derive_states(
        self,
        made: CompiledChangelog,
        kept: Kept[ChangedIndex],
        rows: pa.Table,
        wanted: Collection[CompiledView],
        result: KernelResult,
    ) -> None:
        relation = kept.index.derive(rows)
        for view in wanted:
            with isolate_view_failure(view, result):
                result.states[view.id] = [compute_signed_states(kept.index.con, view, relation)]

    def open(self, made: CompiledChangelog, mark: datetime | None) -> Kept[ChangedIndex]:
        if standing := self.find_standing(made.id):
            return standing
        began, held = time.monotonic(), self.writer.master.epoch
        index, known = self.files.open(made)
        stamps = self.files.stamps
        try:
            above = known.epoch if known else self.saved.load(made, index, held, stamps)
            fill_changed_index(index, self.pipeline, self.writer.layout, stamps, above, held)
        except BaseException:
            index.close()
            raise
        self.kept[made.id] = kept = Kept(index, held, None, self.writer.restated)
        if count := self.note_size(made, index):
            took, since = time.monotonic() - began, f"; above epoch {above}" if above > NOTHING else ""
            log.info("%s rows of %s are known again after %.1f s%s", count, made.name, took, since)
        return kept

    def take_in(
        self, made: CompiledChangelog, kept: Kept[ChangedIndex], rows: pa.Table, epoch: Epoch
    ) -> None:
        kept.index.take(rows, self.files.stamps.stamp(epoch, None).to_json())
        # Other sources may be read on for days: a snapshot has all rows of a table.
        if rows.num_rows:
            self.note_size(made, kept.index)
            self.saved.save(made, kept.index, epoch)

    def note_size(self, made: CompiledChangelog, index: ChangedIndex) -> int:
        """Note how many rows an index has."""
        count = self.writer.indexed[made.name] = index.count_rows()
        return count

    def drop(self, id: str) -> None:
        self.saved.settle(id)
        super().drop(id)
