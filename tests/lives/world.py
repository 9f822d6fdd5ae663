"""One life: a warehouse with its stream, builds and upkeep as they are shipped; beside it what was sent and held."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.lives.definitions import Shape
from tests.lives.events.faults import Died, Fates, fateful, key_of
from tests.lives.frames import Here
from tests.lives.here import sparkless
from tests.lives.oracle import ALL, Held, Rows, Wrong
from tests.lives.rates import Rates, draw_rates, write_rates
from tests.lives.topic import Read, Topic

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.master import ledger_row
from seamline.lake.maintain import repair
from seamline.lake.read import merged_read
from seamline.lake.storage import log_damage, log_store
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.log_entries import Commit
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import Conflict, FenceLost, NotWhole, SeamlineError
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.offsets import OffsetRange, Vector
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import Side
from seamline.model.recent import Recent
from seamline.spark.stream.driver_loop import Driver

FOLDERS = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
HERE: Any = Here()
GAP = 40
"""The most entries that a life's power cut takes, and some."""


@dataclass(frozen=True)
class Entry:
    """A version of the master's log as it was seen, by its file, and the epoch that it holds."""

    version: int
    file: tuple[int, int]
    epoch: Epoch | None

    def stands(self, root: Path) -> bool:
        """Return whether it is still there, as it was."""
        try:
            return key_of(log_store.entry_path(root, self.version)) == self.file
        except FileNotFoundError:
            return False


def unbroken(log: list[Entry], root: Path) -> list[Entry]:
    """Return a log up to the first entry that a power cut took; what was cleaned away, at its beginning, is no loss.

    Entries of other engines may stand above it.
    """
    stands = [each.stands(root) for each in log]
    begins = next((at for at, there in enumerate(stands) if there), len(log))
    return log[: next((at for at in range(begins, len(log)) if not stands[at]), len(log))]


@dataclass(frozen=True)
class Noted:
    """What was answered at an instant."""

    at: datetime
    view: CompiledView
    side: Side
    rows: Rows


@dataclass(frozen=True)
class Backup:
    """A copy of all tables, with E of then, and what the control table said."""

    folder: Path
    newest: int
    wanted: str
    named: tuple[Any, ...]
    restated: tuple[Restatement, ...]


class World:
    """Everything of a life. ``held`` is what the master has committed, by what was seen of the commits themselves.

    ``widened``: the running driver is yet to see that somebody has changed the columns of its tables, or rows for a
    while. ``let_go`` names refused records that a lost quarantine had, by epoch and place, each with the rule by which
    it was judged again before (``Held.only``).
    """

    def __init__(self, shape: Shape, on: Collection[str] = ()) -> None:
        self.shape, self.on = shape, on
        self.topic = Topic.of(shape.lanes, shape.topics)
        self.folder = Path(tempfile.mkdtemp(prefix="life-", dir=FOLDERS))
        self.layout = Layout(self.folder / "w", "life")
        self.fates = Fates()
        self.held: list[Held] = []
        self.epochs: list[int] = []
        self.ends: dict[Any, int] = dict.fromkeys(self.topic.lanes, 0)
        self.numbers: set[int] = set()
        self.log: list[Entry] = []
        self.known = 0
        self.cut = self.doubted = False
        self.moves = 0
        self.widened = False
        self.backup: Backup | None = None
        self.let_go: dict[tuple[int, Any, int], int] = {}
        self.wanted = ""
        self.named: list[Any] = []
        self.token = 0
        self.driver: Driver | None = None
        self.stalled: list[Driver] = []
        self.runs: list[str] = []
        self.jobs: dict[str, BuildJob] = {}
        self.made = 0
        self.divisors = {shape.pipeline.record_version: shape.divisor}
        self.of: dict[int, int] = {}
        self.stated: dict[int, Epoch] = {}
        self.flagged: dict[tuple[Any, ...], bool] = {}
        self.tables: dict[str, Rates] = {}
        self.restated: list[Restatement] = []
        self.stood: set[str] = set()
        self.seen: dict[str, int] = {}
        self.statements: list[Any] = []
        self.noted: list[Noted] = []
        self.manifest: ManifestTable | None = None
        self.state = Manifest()
        self.con = open_duckdb()
        self.stack = ExitStack()

    def __enter__(self) -> World:
        self.stack.enter_context(sparkless(partial(Read, self.topic), parted=self.shape.parted))
        self.stack.enter_context(fateful(self.fates))
        self.stack.enter_context(patch.object(repair, "read_boot_number", lambda: self.moves))
        # Nobody moves the tables under a read here: what is refused is refused again.
        self.stack.enter_context(patch.object(merged_read, "ATTEMPTS", 2))
        # Each start looks so far beyond the end of every table, and no power cut of a life takes more.
        self.stack.enter_context(patch.object(log_damage, "AHEAD", GAP))
        self.stack.enter_context(patch.dict(os.environ, SEAMLINE_PIPELINES=str(self.folder)))
        if self.shape.by:
            self.correct(0)
        return self

    def __exit__(self, *_: object) -> None:
        for driver in [self.driver, *self.stalled]:
            if driver is not None:
                abandon(driver)
        self.stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def newest(self) -> int:
        """E, as far as commits of the master were seen to land."""
        return self.epochs[-1] if self.epochs else -1

    def correct(self, seed: int) -> None:
        """Give the look-up's table other rates."""
        assert self.shape.rated
        rates = draw_rates(self.shape.rated, seed)
        self.tables[write_rates(self.folder, self.pipeline, self.shape.rated, rates)] = rates

    def named_by(self, number: int) -> int:
        """Return how many decisions the epochs up to one name; those above E were lost."""
        there = {*self.epochs}
        known = (each for each in self.stated.values() if each.number in there or each.number > self.newest)
        return max((each.restated for each in known if each.number <= number), default=0)

    @property
    def pipeline(self) -> Any:
        """The definition at hand."""
        return self.shape.pipeline

    def running(self) -> Driver:
        """Return the driver, started if none runs."""
        return self.driver or self.start()

    def start(self) -> Driver:
        """Start a driver under the next token, as a supervisor does; it looks whether it was fenced off itself."""
        driver = self.begun()
        driver.start(HERE)
        self.driver, self.widened = driver, False
        self.look()
        return driver

    def begun(self) -> Driver:
        """Make a driver that has touched nothing yet."""
        self.token += 1
        return Driver(self.pipeline, self.layout, self.token, self.folder)

    def gone(self) -> None:
        """The driver's process is gone."""
        if self.driver is not None:
            abandon(self.driver)
        self.driver = None

    def power_off(self) -> None:
        """Every process is gone."""
        self.gone()
        for driver in self.stalled:
            abandon(driver)
        self.stalled = []

    def moved(self) -> None:
        """Start the machine anew, and give the warehouse another place: no process remembers anything of it."""
        self.moves += 1
        place = self.folder / f"w{self.moves}"
        self.layout.warehouse.rename(place)
        commits = self.fates.disk.commits
        commits[:] = [place / each.relative_to(self.layout.warehouse) for each in commits]
        self.layout = Layout(place, "life")
        self.forget()

    def forget(self) -> None:
        """Be as new: no claim of before is one that answers may not go behind."""
        self.cut, self.doubted, self.manifest = True, True, None
        self.seen.clear()
        self.noted.clear()
        forget()

    def epoch(self, more: int) -> None:
        """Read up to so many records of each lane and hold them; what fails is tried again as the driver does."""
        driver = self.running()
        vector = dict(driver.epochs.progress.vector)
        ends = {lane: min(vector.get(lane, 0) + more, len(sent)) for lane, sent in self.topic.lanes.items()}
        self.read(driver, vector, ends)

    def read(self, driver: Driver, vector: Vector, ends: Vector) -> None:
        """Make one epoch."""
        ranges = [
            OffsetRange(lane, vector.get(lane, 0), end)
            for lane, end in ends.items()
            if end > vector.get(lane, 0)
        ]
        with self.watched():
            try:
                driver.epochs.process_batch(self.topic.raw(ranges), ends, stopping=False)  # type: ignore[arg-type]
            except Conflict:
                if not self.widened or driver is not self.driver:
                    raise
                # Somebody has changed the table's columns: the driver ends, and the supervisor starts another.
                self.gone()
            except SeamlineError:
                raise
            except Exception:
                if not self.fates.struck:
                    raise
                driver.epochs.restart()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """See which epochs the master gets, whatever becomes of who commits them."""
        try:
            yield
        finally:
            self.look()

    def look(self) -> None:
        """Take in what the master's own log has gained: a number once, and ranges that join."""
        root = self.layout.table("master")
        if self.doubted:
            self.log, self.doubted = unbroken(self.log, root), False
        while self.log and not self.log[-1].stands(root):
            if not self.cut:
                raise Wrong(f"version {self.log[-1].version} of the master was taken back")
            self.log.pop()
        if len(self.log) < self.known:
            self.trim()
        while (commit := self.commit(root)) is not None:
            epoch = ledger_row(commit.info)
            self.log.append(Entry(commit.version, key_of(log_store.entry_path(root, commit.version)), epoch))
            if epoch is not None:
                self.take(epoch)
        self.known = len(self.log)

    def look_anew(self) -> None:
        """Take in the master as another one: of what it held before nothing is left, and numbers begin with its own."""
        self.log, self.known = [], 0
        self.numbers.clear()
        self.trim()
        self.look()

    def commit(self, root: Path) -> Commit | None:
        """Read the next commit of the master; None where there is none, or none that a power cut has left whole."""
        try:
            return log_store.read_commit(root, len(self.log))
        except NotWhole:
            if not self.cut:
                raise
            return None

    def trim(self) -> None:
        """Forget what a power cut took from the master."""
        kept = [entry.epoch for entry in self.log if entry.epoch]
        self.epochs, self.held, self.ends = [], [], dict.fromkeys(self.topic.lanes, 0)
        for epoch in kept:
            self.hold(epoch)

    def take(self, epoch: Epoch) -> None:
        """Take in an epoch that the master holds."""
        if epoch.number <= max(self.numbers, default=-1):
            raise Wrong(f"epoch {epoch.number} came after {max(self.numbers)}")
        self.numbers.add(epoch.number)
        self.hold(epoch)

    def hold(self, epoch: Epoch) -> None:
        """Note what an epoch holds."""
        self.epochs.append(epoch.number)
        self.of[epoch.number] = self.divisors[epoch.record_version]
        self.stated[epoch.number] = epoch
        for part in epoch.ranges:
            if epoch.kind is not EpochKind.AMEND:
                if part.start != self.ends[part.lane]:
                    raise Wrong(f"epoch {epoch.number} reads {part} after {self.ends[part.lane]}")
                self.ends[part.lane] = part.end
            if epoch.kind is not EpochKind.HOLE:
                sent = self.topic.lanes[part.lane][part.start : part.end]
                self.held += [
                    Held(epoch.number, part.lane, at, record, self.only(epoch.number, part.lane, at))
                    for at, record in enumerate(sent, part.start)
                ]

    def only(self, *place: Any) -> int:
        """Return the rule for which a record that was let go is still there."""
        return self.let_go.get(place, ALL)

    @contextmanager
    def process(self) -> Iterator[None]:
        """Be a process of its own: it may die."""
        try:
            yield
        except Died:
            pass
        finally:
            self.fates.clear()

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Be the driver's process: when it dies, or was fenced off by a newer one, it is gone."""
        try:
            yield
        except Died:
            self.gone()
        except FenceLost:
            if not self.overtaken:
                raise
            self.gone()
        except Conflict:
            if not self.widened:
                raise
            self.gone()
        finally:
            self.fates.clear()

    @property
    def overtaken(self) -> bool:
        """Return whether a newer driver was started."""
        return self.driver is not None and self.driver.token < self.token


def forget() -> None:
    """Be a new process: what modules keep by the id of a table is of before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("seamline."):
            for key, value in vars(module).items():
                if isinstance(value, dict | Recent) and key.startswith("_") and not key.startswith("__"):
                    value.clear()


def abandon(driver: Driver) -> None:
    """Leave nothing of a driver that is gone but what it committed."""
    if hasattr(driver, "refresher"):
        driver.refresher.closed.set()
    if hasattr(driver, "writer"):
        driver.writer.threads.close()
