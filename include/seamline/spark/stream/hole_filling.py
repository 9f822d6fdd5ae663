"""Reading what was passed over: offsets of a hole that Kafka still has, between the epochs of the live stream."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from seamline.model.errors import SeamlineError
from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import keep_hole_epochs, list_fillable_ranges
from seamline.model.protocol.offsets import OffsetRange, Vector
from seamline.spark.session.attempt_notes import ATTEMPTS, DRY, JUDGED, KEPT, Attempted, Note
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.epoch_sizing import SHARE, WHY
from seamline.spark.stream.imports.amending import Amending
from seamline.spark.stream.read_topics import Topics
from seamline.spark.tasks.kernel_attempts import find_worker_message, is_session_alive

log = logging.getLogger("seamline.stream")
PIECE = 200_000
"""Records that an amending epoch reads at most: live epochs wait for it."""


class Supply(Protocol):
    """Where what is missing comes from."""

    def fetch_beginnings(self) -> Vector:
        """Return the lanes that there are, and from which offset on each is there."""

    def require_there(self, part: OffsetRange) -> None:
        """Raise SeamlineError if a part cannot be read for a reason that is none of its records'."""

    def open_range(self, spark: SparkSession, part: OffsetRange) -> tuple[DataFrame, Amending]:
        """Open a part as a frame, and say what kind of epoch reads it, and how."""

    def find_fault(self, error: Exception) -> SeamlineError | None:
        """Return what is wrong with where a part comes from, if that is what a task failed with; None if not."""


@dataclass(frozen=True)
class TopicSupply:
    """What Kafka still has of a hole."""

    topics: Topics
    """The topics."""

    def fetch_beginnings(self) -> Vector:
        """Fetch the first offset of every lane."""
        return self.topics.fetch_beginnings()

    def require_there(self, part: OffsetRange) -> None:
        """Leave it to the epoch: it asserts that the topics are the same."""

    def open_range(self, spark: SparkSession, part: OffsetRange) -> tuple[DataFrame, Amending]:
        """Open a part of a hole as raw records."""
        return self.topics.read_range(spark, part), Amending(EpochKind.AMEND, self.topics.ids)

    def find_fault(self, error: Exception) -> SeamlineError | None:
        """Leave it to the trials of each record."""
        return None


class Filler:
    """Fills holes piece by piece, each an epoch of kind amend (rule 1 makes it exactly once).

    A piece that fails is halved, and a record that fails alone is condemned, as in a live epoch. So is one of which
    the driver dies: ``attempted`` reports it to the next one. It is tried once more before, unless a trial was what
    killed (``proved``); ``unkept`` counts how often it could not even be kept.
    """

    def __init__(
        self,
        epochs: Epochs,
        ledger: Sequence[Epoch],
        attempted: Attempted,
        supply: Supply | None = None,
        *,
        most: int = PIECE,
    ) -> None:
        self.epochs, self.attempted = epochs, attempted
        self.supply = supply or TopicSupply(epochs.topics)
        self.known = keep_hole_epochs(ledger)
        self.most = min(most, epochs.size.most)
        self.size = self.most
        self.failures, self.why = 0, ""
        self.proved, self.unkept = False, 0
        self.deadly = attempted.read()
        self.unclear: OffsetRange | None = None
        self.doubtful = False
        self.asked: tuple[OffsetRange, ...] = ()
        self.pieces: list[OffsetRange] = []

    def work(self, spark: SparkSession, asked: Iterable[OffsetRange]) -> None:
        """Do the next step of what people have asked for, if there is any."""
        self.request(asked)
        if self.pending:
            self.fill_step(spark)

    def request(self, asked: Iterable[OffsetRange]) -> None:
        """Record what people have asked to be filled; Kafka is asked for what it still has of it."""
        wanted = tuple(asked)
        if wanted != self.asked and not self.unclear:
            before = [each.lane for each in self.pieces[:1]]
            self.pieces = (
                list_fillable_ranges(self.known, wanted, self.supply.fetch_beginnings()) if wanted else []
            )
            self.asked = wanted
            if before != [each.lane for each in self.pieces[:1]]:
                # What was learned of a record is not held against one of another lane.
                self.failures, self.proved, self.unkept = 0, False, 0
            self.restore()
            if self.pieces:
                log.info("Reading %s missing offsets", sum(map(len, self.pieces)))

    def restore(self) -> None:
        """Take less where the driver before has died of a piece, and count that against a record alone."""
        note, self.deadly = self.deadly, None
        if not note or not self.pieces:
            return
        [part] = note.ranges
        first = self.pieces[0]
        died = bool(note.stage)
        self.size = max(len(part) // SHARE, 1) if died else len(part)
        if len(part) == 1 and (first.lane, first.start) == (part.lane, part.start):
            self.failures, self.why = note.size["failures"] + died, WHY
            self.proved = note.size.get("proved", False) or note.stage in (DRY, KEPT)
            self.unkept = note.size.get("unkept", 0) + (note.stage == KEPT)
        log.warning(
            "The previous driver died while reading %s; reading %s records at a time", part, self.size
        )

    @property
    def pending(self) -> bool:
        """Return whether there is something to fill, or to find out."""
        return bool(self.pieces or self.unclear)

    def fill_step(self, spark: SparkSession) -> None:
        """Read one piece and commit it; the caller sees to it that no other epoch is made meanwhile."""
        if self.unclear:
            self.settle(self.unclear)
            return
        if self.doubtful:
            self.look_again()
        if not self.pieces:
            return
        whole = self.pieces[0]
        part = replace(whole, end=min(whole.start + self.size, whole.end))
        self.supply.require_there(part)
        learned = {"failures": self.failures, "proved": self.proved, "unkept": self.unkept}
        note = Note((part,), JUDGED, learned)
        try:
            self.attempted.begin(note)
            frame, amending = self.supply.open_range(spark, part)
            held = self.epochs.amend(
                frame,
                part,
                self.attempted,
                amending,
                condemned=self.why if self.failures >= ATTEMPTS else "",
                proved=self.proved,
                passing=note if self.unkept >= ATTEMPTS else None,
            )
            self.attempted.finish({}, {})
        except SeamlineError:
            self.attempted.finish({}, {})
            # No record is to blame, but its epoch may be committed: the store may have gone after the master's commit.
            self.doubtful = True
            raise
        except Exception as error:  # noqa: BLE001 - the live stream goes on
            if fault := self.supply.find_fault(error):
                self.attempted.finish({}, {})
                self.doubtful = True
                raise fault from None
            self.why = find_worker_message(error)
            self.unkept += self.attempted.kept
            log.error("Filling %s failed: %s", part, self.why)
            if is_session_alive(spark):
                self.attempted.finish({}, {})
            self.unclear = part
            self.settle(part)
            return
        self.failures, self.why = 0, ""
        self.proved, self.unkept = False, 0
        self.size = min(self.size * 2, self.most)
        self.known = condense_epochs([*self.known, held])
        rest = replace(whole, start=part.end)
        self.pieces[:1] = [rest] if len(rest) else []
        if not self.pieces:
            log.info("Read what was missing, up to %s", part)

    def settle(self, part: OffsetRange) -> None:
        """Ask the master whether a part that failed is committed after all, and take a smaller one next if it is not.

        What Kafka has lost in the meantime is no longer tried. KafkaUnavailable leaves all as it is, and nothing
        is counted against a record.
        """
        if self.look_again():
            self.failures = self.failures + 1 if len(part) == 1 else 0
            self.size = max(len(part) // 2, 1)
        self.unclear = None
        if not self.failures:
            self.proved, self.unkept = False, 0

    def look_again(self) -> bool:
        """Ask the master what is missing by now; return whether that begins where it did. Else no failure counts."""
        first = self.pieces[0]
        self.known = keep_hole_epochs(self.epochs.reload_log())
        self.pieces = list_fillable_ranges(self.known, self.asked, self.supply.fetch_beginnings())
        self.doubtful = False
        if any((each.lane, each.start) == (first.lane, first.start) for each in self.pieces):
            return True
        self.failures, self.proved, self.unkept = 0, False, 0
        return False
