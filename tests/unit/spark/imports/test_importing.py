"""Imports wait for their own files alone, and what fails in one is not held against another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seamline.lake.imports.import_plans import load_hindrances
from seamline.lake.storage.layout import Layout
from seamline.model.errors import BadRange
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import is_ledger_contiguous, list_missing_ranges
from seamline.model.protocol.imported.imports import Import
from seamline.model.protocol.offsets import OffsetRange
from seamline.spark.session.attempt_notes import ATTEMPTS
from seamline.spark.stream import hole_filling
from seamline.spark.stream.imports import importing
from seamline.spark.stream.imports.amending import Amending
from seamline.spark.stream.imports.importing import Importer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = (Import(id, "orders", id, 5, "ada", "", NOW) for id in ("one", "two"))


class Driver:
    """A driver whose epochs are kept in a list, and whose files may be wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
        self.log: list[Epoch] = []
        self.wrong: set[str] = set()
        self.failing: set[str] = set()
        self.condemned: list[OffsetRange] = []
        self.time, self.layout = 0.0, Layout(home, "orders")
        monkeypatch.setattr(hole_filling, "is_session_alive", lambda _: True)
        monkeypatch.setattr(importing, "time", SimpleNamespace(monotonic=lambda: self.time))
        monkeypatch.setattr(importing.PlannedRows, "require_there", lambda _, part: self.require(part))
        monkeypatch.setattr(
            importing.PlannedRows, "open_range", lambda *_: (None, Amending(EpochKind.IMPORT, {}))
        )
        monkeypatch.setattr(importing.Importer, "delete_stages", lambda _: None)
        self.importer = Importer(self, [], home)  # type: ignore[arg-type]
        self.importer.filler.size = 1

    @property
    def size(self) -> Any:
        """Return how many records an epoch may have."""
        return SimpleNamespace(most=5)

    @property
    def writer(self) -> Any:
        """Return what has the tables."""
        return SimpleNamespace(layout=self.layout)

    @property
    def topics(self) -> Any:
        """Return no topics."""
        return None

    @property
    def progress(self) -> Any:
        """Return the last epoch."""
        return SimpleNamespace(epoch=self.log[-1] if self.log else None)

    def require(self, part: OffsetRange) -> None:
        """Refuse the files that are wrong."""
        if part.lane.topic_id in self.wrong:
            raise BadRange(f"{part.lane} is gone", hint="put it back")

    def commit_empty(self, **stated: Any) -> None:
        """Commit an epoch without rows."""
        self.log.append(Epoch(len(self.log), 1, NOW, "v", **stated))

    def amend(
        self, frame: object, part: OffsetRange, noted: Any, amending: Amending, *, condemned: str, **_: Any
    ) -> Epoch:
        """Commit a piece, unless its records make the kernel fail."""
        noted.enter_stage("")
        if condemned:
            self.condemned.append(part)
        elif part.lane.topic_id in self.failing:
            raise RuntimeError("a record was poisonous")
        self.log.append(Epoch(len(self.log), 1, NOW, "v", kind=amending.kind, ranges=(part,)))
        return self.log[-1]

    def reload_log(self) -> list[Epoch]:
        """Return the log."""
        return self.log

    def work(self, *asked: Import, steps: int = 40) -> None:
        """Take some steps."""
        for _ in range(steps):
            self.importer.work(None, asked)  # type: ignore[arg-type]

    def read(self) -> dict[str, int]:
        """Return how many places of each import are not missing."""
        missing = {part.lane for parts in list_missing_ranges(self.log).values() for part in parts}
        assert is_ledger_contiguous(self.log)
        return {each.id: each.lane not in missing for each in (ONE, TWO)}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Driver:
    """Nothing was imported yet."""
    return Driver(monkeypatch, tmp_path)


def test_an_import_whose_file_is_gone_holds_up_no_other(driver: Driver) -> None:
    """It is tried again after a while, and ends nobody's run before the others are done."""
    driver.wrong = {ONE.lane.topic_id}
    driver.work(ONE, TWO, steps=4)
    assert driver.importer.halted is None
    driver.work(ONE, TWO)
    assert driver.read() == {"one": False, "two": True}
    assert driver.importer.halted and "is gone" in driver.importer.halted.message
    assert load_hindrances(driver.layout) == {"one": f"{ONE.lane} is gone Hint: put it back"}
    driver.wrong = set()
    driver.work(ONE, TWO)
    assert driver.read() == {"one": False, "two": True}, "it is not looked at all the time"
    driver.time += importing.LOOK_AGAIN
    driver.work(ONE, TWO)
    assert driver.read() == {"one": True, "two": True}
    assert not driver.importer.pending and driver.importer.halted is None
    assert load_hindrances(driver.layout) == {}


def test_an_import_that_waits_is_closed_at_once_when_it_is_cancelled(driver: Driver) -> None:
    """Nobody has to mend a file for that."""
    driver.wrong = {ONE.lane.topic_id}
    driver.work(ONE)
    driver.work(replace(ONE, cancelled="ada: no"), steps=1)
    assert driver.log[-1].kind is EpochKind.AMEND
    assert not driver.importer.pending


def test_failures_of_one_import_condemn_no_record_of_another(driver: Driver) -> None:
    """A record that has failed so often, alone, is refused the next time: the next one must not be."""
    driver.failing = {ONE.lane.topic_id}
    driver.work(ONE, TWO, steps=2 + ATTEMPTS)
    assert driver.importer.filler.failures == ATTEMPTS
    driver.wrong = {ONE.lane.topic_id}
    driver.work(ONE, TWO)
    assert (driver.read()["two"], driver.condemned) == (True, [])
