"""How many records an epoch reads: as many as its time allows, and fewer where records make the kernel fail."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.model.definition import Stream
from seamline.model.intervals import parse_duration
from seamline.model.offsets import Lane, OffsetRange, Vector
from seamline.plan.epochs import next_size

ATTEMPTS = 3


class EpochSize:
    """The size of a stream's epochs: at most what is declared, adapted to the time they take (rate control).

    Kernel failures at one start halve it, and condemn a record that fails alone (rule 17). A query reads in one
    size: ``turned`` tells that it must be started anew for another. ``suspects`` are lanes to be read one by one.
    """

    def __init__(self, stream: Stream) -> None:
        self.most = stream.max_offsets_per_epoch
        self.target = parse_duration(stream.epoch_target).total_seconds()
        self.rate = self.most
        self.limit = self.most
        self.failures = self.alone = 0
        self.condemned = ""
        self.trouble: Vector = {}
        self.suspects: list[Lane] = []
        self.turned = False
        self.off: list[int] = []

    @property
    def halved(self) -> bool:
        """Tell whether epochs are smaller than they could be, because larger ones failed."""
        return self.limit != self.rate

    def recovered(self, vector: Vector) -> bool:
        """Tell whether the records that made larger epochs fail are behind us."""
        return self.halved and all(vector.get(lane, 0) >= end for lane, end in self.trouble.items())

    def outdated(self, vector: Vector) -> bool:
        """Tell whether the query must be started anew: for another lane, or for another size."""
        return self.turned or self.recovered(vector)

    def failed(self, why: str, ends: Vector, ranges: Sequence[OffsetRange]) -> None:
        """Count kernel failures at one start: halve the epoch, condemn a record that fails alone.

        The first halving waits for the third failure; once there is known to be trouble, each failure halves
        again, until a record has failed three times alone. Spark gives every lane at least one record: at one
        for each, the lanes are read one by one.
        """
        records = sum(map(len, ranges))
        self.failures += 1
        self.alone = self.alone + 1 if records == 1 else 0
        self.trouble = {**ends, **self.trouble} if self.halved else dict(ends)
        if self.halved or self.failures >= ATTEMPTS:
            self.limit = max(records // 2, 1)
            if 1 < records <= len(ranges):
                self.suspects = [part.lane for part in ranges]
        if self.alone >= ATTEMPTS:
            self.condemned = why

    def held(self, records: int, seconds: float) -> None:
        """Take in an epoch that is held: of so many records, in so many seconds.

        Two in a row that were too long, or as large as allowed and too short, change the size.
        """
        if self.condemned:
            self.trouble, self.suspects = {}, []
        elif self.suspects:
            self.suspects.pop(0)
            self.turned = True
        elif not self.halved:
            self.adapt(records, seconds)
        self.failures = self.alone = 0
        self.condemned = ""

    def adapt(self, records: int, seconds: float) -> None:
        """Come nearer to the time that an epoch should take."""
        wanted = next_size(self.rate, records, seconds, target=self.target, most=self.most)
        if wanted == self.rate or (self.off and (self.off[-1] > self.rate) != (wanted > self.rate)):
            self.off = []
        if wanted == self.rate:
            return
        self.off.append(wanted)
        if len(self.off) > 1:
            self.rate = self.limit = sum(self.off) // len(self.off)
            self.turned, self.off = True, []

    def restart(self, vector: Vector) -> None:
        """Begin a query anew: in full size where the trouble is behind us."""
        self.turned = False
        if self.recovered(vector):
            self.limit = self.rate
