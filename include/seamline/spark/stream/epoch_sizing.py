"""How many records an epoch reads: as many as its time allows, and fewer where records make the kernel fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamline.model.definition.layers import Stream
from seamline.model.protocol.offsets import Lane, OffsetRange, Vector
from seamline.model.time.intervals import parse_duration
from seamline.plan.stream.epoch_numbers import limit_epoch_size, next_size
from seamline.spark.session.attempt_notes import ATTEMPTS, DRY, KEPT, Note, decode_vector, encode_vector

DEATHS, SHARE = 2, 32
"""So many deaths of the driver at one start narrow the epoch, to that share: each of them costs a start."""
WHY = "the driver died while it judged the record, which kills it each time"


class EpochSize:
    """The size of a stream's epochs: at most what is declared, adapted to the time they take (rate control).

    Kernel failures at one start halve it, and condemn a record that fails alone (rule 17). A query reads in one
    size: ``turned`` says that it must be started again for another. ``suspects`` are lanes to be read one by one.
    ``proved`` says that the condemned record needs no trial, ``unkept`` counts how often it could not even be kept.
    """

    def __init__(self, stream: Stream) -> None:
        self.most = stream.max_offsets_per_epoch
        self.target = parse_duration(stream.epoch_target).total_seconds()
        self.rate = self.most
        self.limit = self.most
        self.failures = self.alone = 0
        self.condemned = ""
        self.proved, self.unkept = False, 0
        self.trouble: Vector = {}
        self.suspects: list[Lane] = []
        self.turned = False
        self.off: list[int] = []

    @property
    def suspect(self) -> Lane | None:
        """Return the lane that is read alone, None where all are read."""
        return next(iter(self.suspects), None)

    @property
    def halved(self) -> bool:
        """Return whether epochs are smaller than they could be, because larger ones failed."""
        return self.limit != self.rate

    @property
    def unread(self) -> bool:
        """Return whether the condemned record is passed over without being read: reading it is what kills."""
        return self.unkept >= ATTEMPTS

    def has_recovered(self, vector: Vector) -> bool:
        """Return whether the records that made larger epochs fail are behind us."""
        return self.halved and all(vector.get(lane, 0) >= end for lane, end in self.trouble.items())

    def is_outdated(self, vector: Vector) -> bool:
        """Return whether the query must be restarted: for another lane, or for another size."""
        return self.turned or self.has_recovered(vector)

    def record_failure(
        self,
        why: str,
        ends: Vector,
        ranges: Sequence[OffsetRange],
        *,
        kept: bool = False,
        patience: int = ATTEMPTS,
        share: int = 2,
    ) -> None:
        """Count kernel failures at one start: halve the epoch, condemn a record that fails alone.

        ``kept``: it failed though it was only to be kept. The first halving waits for the third failure; once there
        is known to be trouble, each failure halves again, until a record has failed three times alone. Spark gives
        every lane at least one record: at one for each, the lanes are read one by one.
        """
        records = sum(map(len, ranges))
        self.failures += 1
        self.unkept += kept
        self.alone = self.alone + 1 if records == 1 else 0
        if records != 1:
            self.condemned, self.proved, self.unkept = "", False, 0
        self.trouble = {**ends, **self.trouble} if self.halved else dict(ends)
        if self.halved or self.failures >= patience:
            self.limit = max(records // share, 1)
            if 1 < records <= len(ranges):
                self.suspects = [part.lane for part in ranges]
        if self.alone >= ATTEMPTS:
            self.condemned = why

    def record_commit(self, records: int, seconds: float, intervals: int = 0) -> None:
        """Record a committed epoch: of so many records, in so many seconds, with rows of so many intervals.

        Two in a row that were too long, or as large as allowed and too short, change the size.
        """
        if self.condemned:
            self.trouble, self.suspects = {}, []
        elif self.suspects:
            self.suspects.pop(0)
            self.turned = True
        elif not self.halved:
            self.adapt(records, seconds, intervals)
        self.failures = self.alone = self.unkept = 0
        self.condemned, self.proved = "", False

    def adapt(self, records: int, seconds: float, intervals: int = 0) -> None:
        """Come nearer to the time that an epoch should take, and to the intervals that it may have."""
        wanted = next_size(self.rate, records, seconds, target=self.target, most=self.most)
        wanted = limit_epoch_size(wanted, self.rate, records, intervals, most=self.most)
        if wanted == self.rate or (self.off and (self.off[-1] > self.rate) != (wanted > self.rate)):
            self.off = []
        if wanted == self.rate:
            return
        self.off.append(wanted)
        if len(self.off) > 1:
            self.rate = self.limit = sum(self.off) // len(self.off)
            self.turned, self.off = True, []

    def restart(self, vector: Vector) -> None:
        """Begin another query: in full size once the trouble is over."""
        self.turned = False
        if self.has_recovered(vector):
            self.limit = self.rate

    def to_json(self) -> dict[str, Any]:
        """Return what is to be remembered of trouble, as JSON has it; nothing if there is none."""
        if not (self.halved or self.failures):
            return {}
        return {
            "limit": self.limit if self.halved else None,
            "failures": self.failures,
            "alone": self.alone,
            "condemned": self.condemned,
            "proved": self.proved,
            "unkept": self.unkept,
            "trouble": encode_vector(self.trouble),
            "suspects": list(map(str, self.suspects)),
        }

    def restore(self, note: Note | None, start: Vector) -> bool:
        """Begin where the driver before has ended; if it died of the epoch that begins at ``start``, count that.

        What it remembered is forgotten once the records are behind us. Tells whether it died.
        """
        if note is None:
            return False
        same = note.is_about_next(start)
        size: Mapping[str, Any] = note.size
        trouble = decode_vector(size.get("trouble", {}))
        if size and any(start.get(lane, 0) < end for lane, end in trouble.items()):
            self.limit = min(size["limit"] or self.rate, self.rate)
            self.trouble = trouble
            if same:
                self.suspects = [Lane.parse(each) for each in size["suspects"]]
                self.failures, self.alone, self.unkept = size["failures"], size["alone"], size["unkept"]
                self.condemned, self.proved = size["condemned"], size["proved"]
        died = same and bool(note.stage)
        if died:
            self.proved = self.proved or note.stage in (DRY, KEPT)
            kept = note.stage == KEPT
            self.record_failure(
                self.condemned or WHY, note.ends, note.ranges, kept=kept, patience=DEATHS, share=SHARE
            )
        return died
