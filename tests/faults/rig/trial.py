"""One trial: its seed, the proof that its faults fired, and what it measured."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class Trial:
    """Everything random of a trial comes from ``chance``; without a fault that fired it is invalid."""

    name: str
    seed: int
    fired: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.began = time.monotonic()
        print(f"\n{self.name}: seed {self.seed}", flush=True)

    def prove(self, fault: str, fired: object) -> None:
        """Note that a fault was seen to have happened; AssertionError where it was not."""
        assert fired, f"INVALID, seed {self.seed}: {fault} did not happen"
        self.fired.append(fault)

    def measure(self, what: str, seconds: float) -> None:
        """Note and print a figure."""
        self.figures[what] = round(seconds, 3)
        print(f"{self.name}: {what} {seconds:.2f}", flush=True)

    def close(self) -> None:
        """Refuse a trial in which nothing went wrong, and say what did."""
        assert self.fired, f"INVALID, seed {self.seed}: no fault fired"
        print(f"{self.name}: seed {self.seed}, {len(self.fired)} faults fired: {'; '.join(self.fired)}")

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return round(time.monotonic() - self.began, 1)

    def row(self) -> dict[str, object]:
        """Return what the file of results keeps."""
        return {
            "trial": self.name,
            "seed": self.seed,
            "seconds": self.seconds,
            "fired": self.fired,
            "figures": self.figures,
        }


@dataclass(frozen=True)
class Results:
    """The trials that have passed, a line of JSON each, so that a run which was cut short can go on."""

    file: Path

    def add(self, row: dict[str, object]) -> None:
        """Keep one."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            out.write(json.dumps(row) + "\n")

    def rows(self) -> list[dict[str, Any]]:
        """Read them all."""
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def revisions(self) -> list[str]:
        """Return the revisions of which something has passed."""
        return sorted({row["revision"] for row in self.rows() if "revision" in row})

    def figures(self) -> dict[str, list[float]]:
        """Return what was measured, by trial and figure, each value once: of its last run."""
        last = {row["test"]: row for row in self.rows()}
        found: dict[str, list[float]] = {}
        for row in last.values():
            name = str(row.get("trial", "")).partition("[")[0].removeprefix("test_").replace("_", " ")
            for what, value in row.get("figures", {}).items():
                found.setdefault(f"{name}: {what}", []).append(value)
        return dict(sorted(found.items()))


def eventually(what: str, look: Callable[[], T], seconds: float = 120.0, *, every: float = 0.1) -> T:
    """Wait for something to be true and give it; AssertionError names what never came about."""
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, f"waited {seconds:g} s for {what}"
        time.sleep(every)
    return found
