"""A life in a bucket: stream, builds, upkeep and readers at once, while requests to the store meet what they can meet.

The stream, the builds and the plain count are those of ``tests.lives``; what a client of a store is told of it is tried
again, as the processes do that are shipped.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, TypeVar
from urllib.parse import unquote

from tests.faults.rig.store_striker import Striker
from tests.lives.checks import check
from tests.lives.definitions import Shape
from tests.lives.events.batching import build_run
from tests.lives.events.ending import End
from tests.lives.events.sending import Close, Send
from tests.lives.here import sparkless
from tests.lives.oracle import Wrong
from tests.lives.topic import Read
from tests.lives.world import HERE, World, abandon

from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, delete_files, list_all_files, list_names, path_below
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.torn_logs import list_table_roots
from seamline.model.errors import (
    Conflict,
    FenceLost,
    NotFound,
    PublishRefused,
    ReadUnstable,
    StoreUnavailable,
)
from seamline.runtime.storage_failures import store_failed
from seamline.spark.stream.catch_up import catch_up

T = TypeVar("T")
TRIES = 40
DELETED = "files deleted by upkeep"


class StoreWorld(World):
    """A world whose tables are in a bucket; ``away`` counts how often its parts were told that the store is away."""

    def __init__(self, shape: Shape, warehouse: Location) -> None:
        super().__init__(shape)
        self.layout = Layout(warehouse, "life")
        self.away: Counter[str] = Counter()

    def __enter__(self) -> StoreWorld:
        self.stack.enter_context(sparkless(partial(Read, self.topic), parted=self.shape.parted))
        return self

    def insist(self, who: str, act: Callable[[], T]) -> T:
        """Do something until the store lets it be done; what else it is told is an error."""
        for _ in range(TRIES):
            try:
                return act()
            except Exception as error:
                if not isinstance(store_failed(error), StoreUnavailable):
                    raise
                self.away[who] += 1
        raise AssertionError(f"{who}: the store was away {TRIES} times in a row")

    def look(self) -> None:
        """Take in what the master has gained, whatever the store says meanwhile."""
        self.insist("look", super().look)

    def begun(self) -> Any:
        """Make a driver, by as many starts as it takes; each has a token of its own."""
        return self.insist("start", super().begun)

    def start(self) -> Any:
        """Start a driver; one that fails at it is gone."""
        return self.insist("start", super().start)

    def epoch(self, more: int) -> None:
        """Make an epoch; after a failure the tables are read again, as the driver does."""

        def once() -> None:
            driver = self.running()
            vector = dict(driver.epochs.progress.vector)
            ends = {
                lane: min(vector.get(lane, 0) + more, len(sent)) for lane, sent in self.topic.lanes.items()
            }
            try:
                with self.watched():
                    self.read_once(driver, vector, ends)
            except Exception as error:
                if not isinstance(store_failed(error) or error, (StoreUnavailable, Conflict)):
                    raise
                self.away["epoch"] += 1
                self.insist("restart", driver.epochs.restart)
                raise StoreUnavailable(str(error)) from error

        self.insist("epoch", once)

    def read_once(self, driver: Any, vector: Any, ends: Any) -> None:
        """Make one epoch, or fail."""
        ranges = [(lane, vector.get(lane, 0), end) for lane, end in ends.items()]
        if any(end > start for _, start, end in ranges):
            self.read(driver, vector, ends)

    def idle(self) -> None:
        """Let views catch up, and declare an edge."""

        def once() -> None:
            driver = self.running()
            try:
                with self.watched():
                    before = driver.writer.behind
                    catch_up(HERE, driver.writer)
                    driver.epochs.unstated |= before.keys() - driver.writer.behind.keys()
                    driver.epochs.state_news()
                    driver.epochs.close("paused")
            except Exception as error:
                if not isinstance(store_failed(error), StoreUnavailable):
                    raise
                self.insist("restart", driver.epochs.restart)
                raise

        self.insist("idle", once)

    def take_over(self) -> None:
        """Start another driver beside one that lives, which then finds out that it was fenced off."""
        old, self.driver = self.driver, None
        self.start()
        if old is None:
            return
        vector = dict(old.epochs.progress.vector)
        ends = {lane: len(sent) for lane, sent in self.topic.lanes.items()}
        newest = self.newest
        with suppress(FenceLost, Conflict, StoreUnavailable, OSError):
            self.read_once(old, vector, ends)
        if self.newest != newest:
            raise Wrong(f"a driver that was fenced off has committed epoch {self.newest}")
        abandon(old)

    def publish(self) -> None:
        """Build what is dirty, and publish it."""
        self.made += 1
        name = f"run-{self.made}"

        def once() -> None:
            with suppress(PublishRefused, Conflict, NotFound):
                build_run(self, name, None)
                if name in self.runs:
                    publish_run(self.pipeline, self.layout, name)

        self.insist("build", once)


@dataclass
class Company:
    """Who is there beside the stream: each in a thread, until the life is over; ``done`` counts what they did.

    ``pause`` is how many seconds somebody waits who has to leave the server to others, too.
    """

    world: StoreWorld
    pause: float = 0.1
    halt: threading.Event = field(default_factory=threading.Event)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[BaseException] = field(default_factory=list)

    @contextmanager
    def at_work(self, *more: Callable[[], None]) -> Iterator[Company]:
        """Have them all at work, and others without a pause."""
        threads = [
            threading.Thread(target=self.repeat, args=(act, pause), name=act.__name__, daemon=True)
            for acts, pause in (((self.upkeep, self.reader, self.holder), self.pause), (more, 0.02))
            for act in acts
        ]
        for each in threads:
            each.start()
        try:
            yield self
        finally:
            self.halt.set()
            for each in threads:
                each.join()
        if self.failures:
            raise self.failures[0]

    def repeat(self, act: Callable[[], None], pause: float) -> None:
        """Do something again and again."""
        try:
            while not self.halt.wait(pause):
                act()
                self.done[f"rounds of {act.__name__}"] += 1
        except BaseException as failure:  # noqa: BLE001 - it is the test's, which raises it
            self.failures.append(failure)
            self.halt.set()

    def upkeep(self) -> None:
        """Compact, clean and delete; count the files that were deleted."""
        with suppress(Conflict):
            found = self.world.insist(
                "upkeep", lambda: maintain_tables(self.world.pipeline, self.world.layout)
            )
            self.done[DELETED] += sum(found.deleted.values())

    def reader(self) -> None:
        """Ask every view; what was answered once is never taken back."""
        for view in self.world.pipeline.views:
            try:
                found = read_merged_answer(self.world.pipeline, view, self.world.layout)
            except (NotFound, ReadUnstable, StoreUnavailable):
                continue
            if found.until < self.newest.get(view.id, -1):
                raise Wrong(f"{view.id} answered to {found.until} after {self.newest[view.id]}")
            self.newest[view.id] = found.until

    @functools.cached_property
    def newest(self) -> dict[str, int]:
        """How far each view has answered."""
        return {}

    def holder(self) -> None:
        """Renew the lease, which nobody else takes: LeaseHeld is a lease lost to oneself."""
        now = datetime.now(UTC)
        control = self.world.insist("lease", lambda: ControlTable.ensure(self.world.layout))
        lease = self.world.insist("lease", lambda: control.take("holder", now=now))
        for _ in range(5):
            lease = self.world.insist("lease", partial(control.renew, lease, now=now))

    def scratch(self, settle: Callable[[str], None]) -> None:
        """Put, find, read and delete objects, and compare with what was put; ``settle`` waits for late requests."""
        # Never the same name twice, as with data files: a request may be done after its sender gave up.
        folder = self.world.layout.warehouse / "scratch" / uuid.uuid4().hex
        kept = {f"{number}.bin": bytes([number]) * 1000 * (number + 1) for number in range(3)}
        for name, data in kept.items():
            self.world.insist("scratch", partial((folder / name).write_bytes, data))
        for name, data in kept.items():
            if self.world.insist("scratch", (folder / name).read_bytes) != data:
                raise Wrong(f"{name} is not what was put")
            if not self.world.insist("scratch", (folder / name).exists):
                raise Wrong(f"{name} is not there")
        if sorted(self.world.insist("scratch", partial(list_names, folder))) != sorted(kept):
            raise Wrong("a listing is not what was put")
        # Otherwise one of them would be put there again after it was deleted.
        settle(folder.name)
        self.world.insist("scratch", partial(delete_files, [folder / name for name in kept]))
        if found := self.world.insist("scratch", partial(list_names, folder)):
            raise Wrong(f"{found} was deleted")


def live_in_a_bucket(
    world: StoreWorld, striker: Striker, company: Company, chance: Random, *, epochs: int, deleted: int = 0
) -> None:
    """Stream, build, publish and take over until all has struck, for so many epochs, and until upkeep has deleted so
    many files; then compare everything with the plain count, and end.
    """

    def scratch() -> None:
        if striker.wants("head", "list", "put", "delete"):
            company.scratch(striker.proxy.settle)

    def is_enough() -> bool:
        return striker.over and len(world.epochs) >= epochs and company.done[DELETED] >= deleted

    with company.at_work(scratch, striker.strike):
        while not (company.halt.is_set() or is_enough()):
            if striker.wants("create in manifest"):
                close_and_publish(world, chance)
            if striker.over and company.done[DELETED] < deleted:
                # The one that is fenced off leaves files behind.
                world.take_over()
            step(world, chance)
    striker.proxy.clear()
    require_live_files(world)
    End().run(world)
    require_live_files(world)


def require_live_files(world: StoreWorld) -> None:
    """Raise Wrong if a file that a table names is not in the bucket."""
    for root in list_table_roots(world.layout.warehouse / world.layout.pipeline):
        named = set(Table.open(root).actions()["path"].to_pylist())
        there = {path_below(each, root) for each in list_all_files(root)}
        if gone := {unquote(each) for each in named} - there:
            raise Wrong(f"{root} names files that are not there: {sorted(gone)[:3]}")


def close_and_publish(world: StoreWorld, chance: Random) -> None:
    """Have a day close, build what is dirty, and publish it."""
    Close.draw(chance).run(world)
    world.epoch(40)
    world.publish()


def step(world: StoreWorld, chance: Random) -> None:
    """Do one thing, as often as it would be done."""
    Send.draw(chance).run(world)
    world.epoch(chance.choice([3, 10, 40]))
    draw = chance.random()
    if draw < 0.2:
        Close.draw(chance).run(world)
        world.idle()
    elif draw < 0.4:
        world.publish()
    elif draw < 0.5:
        world.take_over()
    elif draw < 0.6:
        world.insist("check", lambda: check(world))
