"""Spark's checkpoints of a stream: what the newest says, and a new folder for each new beginning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from seamline.plan.stream.epoch_numbers import Checkpoint

PREFIX = "checkpoint-"


class Checkpoints:
    """The checkpoint folders of one stream; only the newest counts, and the master counts more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def newest(self) -> Path | None:
        """Return the newest checkpoint's folder."""
        return max(self.folder.glob(f"{PREFIX}*"), default=None)

    def begin(self) -> Path:
        """Make a new folder and remove all but the newest of the others."""
        old = sorted(self.folder.glob(f"{PREFIX}*"))
        number = int(old[-1].name.removeprefix(PREFIX)) + 1 if old else 0
        fresh = self.folder / f"{PREFIX}{number:06d}"
        fresh.mkdir(parents=True)
        for path in old[:-1]:
            shutil.rmtree(path, ignore_errors=True)
        return fresh

    def read(self) -> Checkpoint | None:
        """Read what the newest checkpoint contains; None if there is none that can be read."""
        path = self.newest
        planned = last(path / "offsets") if path else None
        if path is None or planned is None:
            return None
        try:
            ends = read_planned_ends(path, planned)
        except (OSError, ValueError):
            return None
        finished = last(path / "commits")
        return Checkpoint(planned, -1 if finished is None else finished, ends)


def last(log: Path) -> int | None:
    """Return the newest batch of one of Spark's logs."""
    return max((int(file.name) for file in log.glob("*") if file.name.isdigit()), default=None)


def read_planned_ends(path: Path, batch: int) -> dict[str, dict[int, int]]:
    """Read the end offsets that Spark planned for a batch, by topic and partition; ValueError for none."""
    lines = (path / "offsets" / str(batch)).read_text().splitlines()
    if len(lines) < 3 or not lines[0].startswith("v"):
        raise ValueError(f"{path}/offsets/{batch} is not an offset log entry")
    return {
        topic: {int(partition): int(end) for partition, end in ends.items()}
        for topic, ends in json.loads(lines[2]).items()
    }
