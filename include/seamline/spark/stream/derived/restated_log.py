"""The rows of the log from which others are derived: whether all fit the record version, and which decisions hold."""

from __future__ import annotations

import time

from seamline.kernel.restated_rows import RowReprocessing, open_reprocessing
from seamline.lake.joins.restatements import take_named_restatements
from seamline.lake.log.epoch_log import each_epoch, read_condensed_log
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.plan.batch.reprocessing_plan import list_outdated_epochs
from seamline.spark.stream.epoch_writer import Writer

ASKED_EVERY = 30.0
"""Seconds after which it is asked again whether rows wait to be validated again."""


class RestatedLog:
    """The log of a writer's pipeline, as its newest epoch names decisions."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.pipeline = writer, writer.pipeline
        self.doubt, self.asked_again = "", 0.0
        self.judges: dict[int, RowReprocessing] = {}

    def find_doubt(self) -> str:
        """Say why nothing can be derived: some rows in reach may be of another record version. Empty where it can."""
        held, now = self.writer.master.epoch, time.monotonic()
        if self.doubt and now < self.asked_again:
            return self.doubt
        self.asked_again, version = now + ASKED_EVERY, self.pipeline.record_version
        self.doubt = ""
        if list_outdated_epochs(read_condensed_log(self.writer.layout), version, ()):
            judged = Reprocessed(self.pipeline, self.writer.layout).verdicts()
            waiting = list_outdated_epochs(each_epoch(self.writer.layout), version, judged, until=held)
            if waiting:
                self.doubt = (
                    f"epochs {waiting[0].number}..{waiting[-1].number} are of another record version; a build, or "
                    f"`seamline quarantine replay {self.pipeline.name}`, validates them again"
                )
        return self.doubt

    def find_judge(self) -> RowReprocessing | None:
        """Return what makes rows as the decisions that the log names have them, None while it names none."""
        if not (count := self.writer.restated):
            return None
        if count not in self.judges:
            named = take_named_restatements(self.writer.layout, count)
            self.judges = {count: open_reprocessing(self.pipeline, self.writer.layout, named)}
        return self.judges[count]

    def list_restated_views(self, count: int) -> dict[str, str]:
        """List the views that do not take an epoch that names so many restatements, and why."""
        derived = [(view.id, view.derived) for view in self.pipeline.views if view.derived]
        new = list_restatements(self.writer.layout)[self.writer.restated : count] if derived else ()
        names = {each.lookup for each in new}
        return {
            id: f"look-up {', '.join(sorted(names & made.lookups))} was restated; intervals wait for a build"
            for id, made in derived
            if names & made.lookups
        }
