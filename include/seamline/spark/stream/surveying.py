"""The driver's half of a survey: what depends on the records before an epoch's, found out before it is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.marks import PLACE, marks_schema
from seamline.kernel.survey import survey_schema
from seamline.kernel.validation import REPEATED
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.known_ids import KnownIds, decode_tables
from seamline.spark.stream.register import Register
from seamline.spark.tasks.id_parts import COUNTED, survey_for_counts
from seamline.spark.tasks.task import REPORT, collect_reports, limit_task_memory


class Surveys:
    """Surveys epochs for one driver: repeated ids by an index in parts below ``folder``, count windows by a register.

    ``commit`` keeps what the last survey found, once its epoch is committed; ``settle`` looks after a failure if it is.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout, folder: Path) -> None:
        self.pipeline = pipeline
        self.ids = KnownIds(pipeline, layout, folder) if pipeline.record.dedup else None
        counting = any(view.counts for view in pipeline.views)
        self.register = Register(pipeline, layout) if counting else None
        self.epoch = NOTHING

    def survey(self, frame: DataFrame, config: KernelConfig) -> KernelConfig:
        """Survey a micro-batch, and return the marks for the kernel."""
        self.epoch = config.epoch
        if self.ids:
            repeated, counted = self.ids.find_repeated(frame, config)
        else:
            repeated, counted = PLACE.empty_table(), self.survey_for_counts(frame, config)
        if self.register:
            found = pa.concat_tables([survey_schema(self.pipeline).empty_table(), *counted])
            return replace(config, marks=self.register.number(found, repeated))
        marks = repeated.append_column(REPEATED, pa.repeat(pa.scalar(True), repeated.num_rows))
        return replace(config, marks=marks.cast(marks_schema(self.pipeline)))

    def survey_for_counts(self, frame: DataFrame, config: KernelConfig) -> list[pa.Table]:
        """Survey a micro-batch of which no ids are asked."""
        work = limit_task_memory(survey_for_counts(config), self.pipeline.definition.stream.worker_memory)
        return decode_tables(collect_reports(frame.mapInArrow(work, REPORT)), COUNTED)

    def commit(self, epoch: int) -> None:
        """Keep what the last survey found if it was of this epoch, which is committed, and drop it if not."""
        if epoch != self.epoch:
            self.settle(epoch)
            return
        if self.ids:
            self.ids.commit()
        if self.register:
            self.register.commit()

    def settle(self, newest: int) -> None:
        """Keep what the last survey found if its epoch is the ``newest`` that is committed, and drop it if not."""
        if self.ids:
            self.ids.settle(newest)
        if self.register:
            self.register.forget()
