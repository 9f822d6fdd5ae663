"""What a driver is at, on disk: should it die of an epoch, the next one knows of which, and what halving had learned.

A process that the machine kills for its memory says nothing. So an epoch is noted before the kernel reads it, and the
note is taken away once the kernel is through; what is found at a start was the death of the driver before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seamline.model.protocol.offsets import Lane, OffsetRange, Vector

JUDGED, DRY, KEPT = "judged", "dry", "kept"
"""What is done with an epoch: validated, validated without writing files, or put into the quarantine as it is."""
ATTEMPTS = 3
"""So many times a record, alone, may end what validates it before it is refused."""


@dataclass(frozen=True)
class Note:
    """An epoch that is being made; without ranges, only what was learned for the next one."""

    ranges: tuple[OffsetRange, ...] = ()
    """The offsets of the epoch."""
    stage: str = ""
    """JUDGED, DRY or KEPT; empty without an epoch."""
    size: Mapping[str, Any] = field(default_factory=dict)
    """What halving epochs has learned (``EpochSize.kept``)."""
    start: Vector = field(default_factory=dict)
    """Without an epoch: where the log ended, as the next offset of each lane."""

    @property
    def ends(self) -> dict[Lane, int]:
        """Return the end offset of each lane of the epoch."""
        return {part.lane: part.end for part in self.ranges}

    def is_about_next(self, vector: Vector) -> bool:
        """Return whether it is about what comes next where the log is read to ``vector``; lanes may have come since."""
        begun = self.start or {part.lane: part.start for part in self.ranges}
        return all(vector.get(lane) == at for lane, at in begun.items())

    def to_json(self) -> str:
        """Write it."""
        return json.dumps(
            {
                "ranges": [[str(part.lane), part.start, part.end] for part in self.ranges],
                "stage": self.stage,
                "size": dict(self.size),
                "start": encode_vector(self.start),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Note:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        ranges = tuple(OffsetRange(Lane.parse(lane), start, end) for lane, start, end in row["ranges"])
        return cls(ranges, row["stage"], row["size"], decode_vector(row["start"]))


class Attempted:
    """The note in ``file``. A disk that takes no more is no reason to stop: then nothing is remembered."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.note: Note | None = None
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)

    def begin(self, note: Note) -> None:
        """Note what is done next, in one step; unsynced, as it has to outlive processes, but no power cut."""
        self.note = note
        draft = self.file.with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError):
            draft.write_text(note.to_json())
            draft.replace(self.file)

    def enter_stage(self, stage: str) -> None:
        """Go on to another stage of the epoch that was begun; what fills a hole is no epoch of the live stream."""
        if self.note and self.note.stage and self.note.stage != stage:
            self.begin(replace(self.note, stage=stage))

    @property
    def kept(self) -> bool:
        """Return whether the epoch is only to be kept."""
        return self.note is not None and self.note.stage == KEPT

    def finish(self, start: Vector, size: Mapping[str, Any]) -> None:
        """Note that the process has outlived it; what ``size`` remembers of trouble is kept until there is none."""
        if size:
            self.begin(Note(size=size, start=start))
            return
        self.note = None
        with suppress(OSError):
            self.file.unlink(missing_ok=True)

    def read(self) -> Note | None:
        """Read the note of the driver before; None if there is none that can be read."""
        try:
            return Note.from_json(self.file.read_text())
        except (OSError, ValueError, KeyError, TypeError):
            return None


def encode_vector(vector: Vector) -> dict[str, int]:
    """Encode a vector as JSON has it."""
    return {str(lane): at for lane, at in vector.items()}


def decode_vector(row: Mapping[str, int]) -> dict[Lane, int]:
    """Decode what ``encode_vector`` wrote."""
    return {Lane.parse(lane): at for lane, at in row.items()}
