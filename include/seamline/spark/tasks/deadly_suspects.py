"""What validating records again has learned of those that end its process, on disk: the next run begins with that.

What the machine kills for its memory says nothing. So it is noted which records a job is about to validate; a note
that is found with nobody behind it was the death of a run, and its records are validated in shares from then on, each
by a job of its own, down to a record that ends its run alone. That is kept until the epochs are validated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.runtime.processes import Life, life_of, own_process_name
from seamline.spark.session.attempt_notes import ATTEMPTS, JUDGED, Attempted, Note
from seamline.spark.tasks.deadly_records import halve_ranges

log = logging.getLogger("seamline.build")
HALVINGS = 5
"""So often the records of which a run has died are halved at once: each death costs a run."""
Piece = tuple[OffsetRange, ...]


class Suspects:
    """The note in ``file``; only what was learned by runs that validate as ``how`` says counts.

    ``groups`` are pieces to validate apart, each group of what one run has died of; ``condemned`` are records that
    are never validated, ``deaths`` those that a run has died of alone, once for each. A run that has outlived no job
    is no witness against a record: it may be the machine. While another run lives that keeps the note, this one has
    none.
    """

    def __init__(self, file: Path, how: str) -> None:
        self.attempted, self.how = Attempted(file), how
        self.groups: list[list[Piece]] = []
        self.condemned: list[OffsetRange] = []
        self.deaths: list[OffsetRange] = []
        self.witness = False
        note = self.attempted.read()
        by = note.size.get("by", "") if note else ""
        self.kept = by == own_process_name() or life_of(by) is not Life.ALIVE
        if note and self.kept and note.size.get("how") == how:
            self.restore(note)

    def restore(self, note: Note) -> None:
        """Restore what earlier runs have learned, and record the death of the last one."""
        learned = note.size
        self.groups = [[read(piece) for piece in group] for group in learned["groups"]]
        self.condemned, self.deaths = [*read(learned["condemned"])], [*read(learned["deaths"])]
        if note.ranges:
            self.record_death(note.ranges, witness=learned["witness"])

    def record_death(self, piece: Piece, *, witness: bool) -> None:
        """Count the death of a run that validated a piece: cut it in shares, or condemn the record that it is."""
        log.warning("The previous run died while it reprocessed %s records", sum(map(len, piece)))
        self.groups = [group for group in self.groups if piece not in group]
        if sum(map(len, piece)) > 1:
            self.groups.append(split_piece(piece))
            return
        self.deaths.extend(piece if witness else ())
        if self.deaths.count(piece[0]) < ATTEMPTS:
            self.groups.append([piece])
        else:
            self.condemned.extend(piece)
            log.error("The record at %s ends every run that reprocesses it, and is refused", piece[0])

    def partition(self, ranges: Sequence[OffsetRange]) -> list[Piece]:
        """Part what is to be validated: what nothing is known of, then each piece to be validated apart."""
        suspected = [piece for group in self.groups for piece in group if is_within_ranges(piece, ranges)]
        rest = tuple(subtract_ranges(ranges, [part for piece in suspected for part in piece]))
        found = [rest, *suspected] if rest else suspected
        self.witness = len(found) == 1
        return found

    def begin(self, piece: Piece) -> None:
        """Note what is validated next."""
        if self.kept:
            self.attempted.begin(Note(piece, JUDGED, self.to_json()))

    def finish(self, ranges: Sequence[OffsetRange] = ()) -> None:
        """Note that nothing is being validated; what is about ``ranges``, which are finished, is forgotten."""
        self.groups = [
            group for group in self.groups if not any(is_within_ranges(piece, ranges) for piece in group)
        ]
        self.condemned, self.deaths = (
            [each for each in some if not is_within_ranges((each,), ranges)]
            for some in (self.condemned, self.deaths)
        )
        if self.kept:
            self.attempted.finish({}, self.to_json() if self.groups or self.condemned else {})

    def to_json(self) -> Mapping[str, Any]:
        """Return what is to be remembered, as JSON has it."""
        return {
            "by": own_process_name(),
            "how": self.how,
            "groups": [[*map(encode_ranges, group)] for group in self.groups],
            "condemned": encode_ranges(self.condemned),
            "deaths": encode_ranges(self.deaths),
            "witness": self.witness,
        }


def split_piece(piece: Piece) -> list[Piece]:
    """Split a piece in about as many records each."""
    found = [piece]
    for _ in range(HALVINGS):
        found = [tuple(half) for each in found for half in halve_ranges(each) if half]
    return found


def is_within_ranges(piece: Iterable[OffsetRange], ranges: Iterable[OffsetRange]) -> bool:
    """Return whether all of a piece is in some ranges."""
    return not [*subtract_ranges(piece, ranges)]


def subtract_ranges(ranges: Iterable[OffsetRange], taken: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    """Return what is left of some ranges."""
    for part in ranges:
        start = part.start
        for hole in sorted(each for each in taken if each.lane == part.lane):
            if hole.start < part.end and hole.end > start:
                if hole.start > start:
                    yield replace(part, start=start, end=hole.start)
                start = hole.end
        if start < part.end:
            yield replace(part, start=start)


def encode_ranges(ranges: Iterable[OffsetRange]) -> list[tuple[str, int, int]]:
    """Encode ranges as JSON has them."""
    return [(str(part.lane), part.start, part.end) for part in ranges]


def read(rows: Iterable[tuple[str, int, int]]) -> Piece:
    """Read what ``encode_ranges`` wrote."""
    return tuple(OffsetRange(Lane.parse(lane), start, end) for lane, start, end in rows)
