"""What a stream's driver does between two epochs, and what it must not do: the loop with everything else made up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seamline.kernel.kernel_result import KernelResult
from seamline.model.errors import (
    Conflict,
    KafkaUnavailable,
    OffsetGap,
    SeamlineError,
    SparkFailed,
    StoreUnavailable,
)
from seamline.model.protocol.control import Control, Drained
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.epoch_numbers import Turns
from seamline.spark.session.attempt_notes import Attempted
from seamline.spark.stream import driver_loop, kernel_runs
from seamline.spark.stream import epoch_maker as epochs_module
from seamline.spark.stream.driver_loop import Driver
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.tasks.kernel_attempts import KernelFailed


class Query:
    """A query of Spark's."""

    def __init__(self, *, active: bool = True, hangs: bool = False) -> None:
        self.isActive, self.hangs = active, hangs
        self.stopped = 0

    def stop(self) -> None:
        self.isActive = False
        self.stopped += 1

    def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
        self.isActive = self.hangs
        return not self.hangs

    def exception(self) -> None:
        return None


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A driver with nothing behind it; ``said`` is what it asked of others, in order."""
    made: Any = object.__new__(Driver)
    said: list[str] = []

    def noting(name: str) -> Any:
        return lambda *given, **named: said.append(" ".join([name, *map(str, given)]))

    made.said = said
    made.lock, made.stopping = threading.RLock(), threading.Event()
    made.closed = made.paused = made.raised = False
    made.failure, made.asked, made.told = None, Control(), float("-inf")
    made.turns = Turns()
    made.spark = None
    made.writer = SimpleNamespace(behind={}, awaiting=set(), master=SimpleNamespace(epoch=7))
    made.side = SimpleNamespace(work=lambda spark, asked, *, stopping: None)
    made.epochs = SimpleNamespace(
        **{
            name: noting(name)
            for name in (
                "declare_idle_edge",
                "state_news",
                "restart",
                "reload_log",
                "close",
                "write_heartbeat",
            )
        },
        catch_up=lambda _, views: said.append(f"catch up {views}"),
        is_outdated=False,
        retries=0,
        size=SimpleNamespace(halved=True, limit=1, condemned=""),
        askers=SimpleNamespace(keep_up=lambda _: None, close=lambda: None),
    )
    made.refresher = SimpleNamespace(close=lambda: None)
    made.topics = SimpleNamespace(close=lambda: None, names=("orders",))
    made.poll_control = lambda: None
    made.open_query = lambda: said.append("query") or Query()
    made.start_query = lambda **_: said.append("query anew") or Query()
    monkeypatch.setattr(driver_loop, "TICK", 0.001)
    return made


def away(*_: object) -> None:
    raise KafkaUnavailable("nobody answers")


def store_away(*_: object) -> None:
    raise OSError("Generic S3 error: timed out")


def landed_late(*_: object) -> None:
    raise Conflict("An earlier commit of this writer has landed late in ledger.")


class Waited:
    """A lock for which the main thread waits: meanwhile the epoch that has it fails."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def acquire(self, timeout: float = -1) -> bool:
        self.driver.failure = OSError("no answer")
        return True

    def release(self) -> None:
        self.driver.said.append("released")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def test_nothing_is_committed_after_an_epoch_that_has_failed(driver: Any) -> None:
    """The loop waits behind the epoch; where that fails nobody knows where the master ends."""
    driver.writer.behind = {"v": 3}
    driver.lock = Waited(driver)
    driver.restart_after_failure = lambda query: driver.stopping.set() or query
    driver.run()
    assert driver.said == ["query", "write_heartbeat", "released"]


def test_views_that_are_behind_take_a_turn_one_by_one(driver: Any) -> None:
    """The one that did not move waits; an epoch gets in between."""
    driver.writer.behind = {"a": 3, "b": 5}
    for _ in range(3):
        driver.work_between_epochs()
    assert [each for each in driver.said if each.startswith("catch")] == ["catch up ['a']", "catch up ['b']"]


def test_a_query_is_not_begun_beside_one_whose_epoch_has_just_failed(driver: Any) -> None:
    """It would be live with a failure that is not its own, and nobody would stop it."""
    query = Query()

    def stop() -> None:
        query.isActive = False
        driver.failure = OSError("poison")

    query.stop = stop  # type: ignore[method-assign]
    assert driver.replace_query(query) is query
    assert driver.said == []


def test_a_failed_query_that_does_not_end_is_stopped(driver: Any) -> None:
    """Two queries over one checkpoint would take each other's plans for their own."""
    query = Query(hangs=True)
    driver.failure, driver.raised = OSError("poison"), True
    assert driver.restart_after_failure(query) is not query
    assert query.stopped == 1
    assert driver.said == ["restart", "query anew"]


@pytest.mark.parametrize(
    "failure",
    [
        Conflict("An earlier commit of this writer has landed late in master."),
        SparkFailed("A part has read two attempts of a task."),
    ],
)
def test_a_commit_that_landed_late_or_a_mixture_of_attempts_is_no_reason_to_end(
    driver: Any, failure: SeamlineError
) -> None:
    """The tables are looked at anew, and the stream goes on where the master ends."""
    driver.failure = failure
    assert driver.restart_after_failure(Query(active=False))
    assert driver.said == ["restart", "query anew"]
    driver.failure = OffsetGap("offsets are gone")
    with pytest.raises(OffsetGap):
        driver.restart_after_failure(Query(active=False))


@pytest.mark.parametrize("gone", [away, store_away])
@pytest.mark.parametrize("query", [None, Query(active=False)])
def test_a_broker_or_a_store_is_waited_for_whatever_it_is_needed_for(
    driver: Any, query: Query | None, gone: Callable[[], None]
) -> None:
    """After a pause, too."""
    answers = [gone, gone, lambda: driver.said.append("restart")]
    driver.epochs.restart = lambda: answers.pop(0)()
    assert driver.restart_after_failure(query) is not query
    assert driver.said == ["restart", "query anew"]
    assert driver.epochs.retries == (0 if query is None else 1)


@pytest.mark.parametrize("gone", [away, store_away])
def test_a_new_query_waits_for_a_broker_or_a_store(driver: Any, gone: Callable[[], None]) -> None:
    """What it was begun for is done by the next round."""
    driver.epochs.restart = gone
    query = Query()
    assert driver.replace_query(query) is query
    assert isinstance(driver.failure, KafkaUnavailable | StoreUnavailable)
    assert not query.isActive


def test_a_store_is_waited_for_longer_than_failures_are_forgiven(driver: Any) -> None:
    """No record is blamed for it, and no driver ends: a new one could do no more."""
    driver.epochs.retries = driver_loop.GIVE_UP
    driver.failure, driver.raised = StoreUnavailable("timed out"), True
    assert driver.restart_after_failure(Query(active=False))
    assert (driver.epochs.retries, driver.failure) == (driver_loop.GIVE_UP, None)


def test_after_a_commit_between_epochs_that_may_have_landed_the_tables_are_read_again(driver: Any) -> None:
    """The query is well, and knows nothing of it: it is stopped, and nobody waits for it to fail."""
    driver.epochs.state_news = store_away
    driver.work_between_epochs()
    assert isinstance(driver.failure, StoreUnavailable)
    query = Query(hangs=True)
    assert driver.restart_after_failure(query) is not query
    assert query.stopped == 1
    assert driver.said == ["declare_idle_edge None", "restart", "query anew"]


@pytest.mark.parametrize("met", ["declare_idle_edge", "catch_up"])
def test_a_row_that_landed_late_ends_no_driver_that_meets_it_between_epochs(driver: Any, met: str) -> None:
    """In a bucket the ledger's row of an epoch may fail after it: whoever asks for the ledger next is told."""
    driver.writer.behind = {"v": 3}
    setattr(driver.epochs, met, landed_late)
    driver.work_between_epochs()
    assert isinstance(driver.failure, Conflict)
    assert driver.restart_after_failure(Query())
    assert driver.said[-2:] == ["restart", "query anew"]
    assert driver.failure is None


def test_a_row_that_landed_late_is_read_again_in_a_pause(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver stays up."""
    monkeypatch.setattr(driver_loop, "TELL_EVERY", 0.0)
    driver.epochs.close = landed_late
    driver.pause(Query())
    assert driver.said == ["write_heartbeat paused"]
    driver.epochs.close = lambda state: driver.said.append(f"close {state}")
    driver.pause(None)
    assert driver.said[1:] == ["reload_log", "close paused"]


def test_what_a_store_that_is_away_would_say_of_the_stream_is_asked_again(driver: Any) -> None:
    """Until then it does what it was last told to do, and ends if nobody is there to stop it."""
    driver.poll = SimpleNamespace(look=store_away)
    driver.parent = os.getppid()
    Driver.poll_control(driver)
    assert not driver.stopping.is_set()
    driver.parent = -1
    Driver.poll_control(driver)
    assert driver.stopping.is_set()


def test_a_pause_declares_an_edge_as_soon_as_it_can(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the broker is away there is none; what had failed is found out first."""
    monkeypatch.setattr(driver_loop, "TELL_EVERY", 0.0)
    driver.failure = OSError("no answer")
    driver.epochs.reload_log = away
    driver.pause(Query())
    assert driver.said == ["write_heartbeat paused"]
    driver.epochs.reload_log = lambda: driver.said.append("reload_log")
    driver.epochs.close = store_away
    driver.pause(None)
    assert isinstance(driver.failure, StoreUnavailable)
    driver.epochs.close = lambda state: driver.said.append(f"close {state}")
    driver.said.clear()
    driver.pause(None)
    assert driver.said == ["reload_log", "close paused"]
    assert driver.failure is None


@pytest.mark.parametrize("gone", [away, store_away, landed_late])
def test_the_end_waits_for_no_broker_and_no_store(driver: Any, gone: Callable[[], None]) -> None:
    """Its last edge is the next driver's."""
    driver.epochs.close = gone
    driver.finish(None)
    assert driver.closed


@pytest.fixture
def epochs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Epochs with nothing behind them."""
    made: Any = object.__new__(Epochs)
    made.derived = SimpleNamespace(
        any=False, join=lambda *_: None, fold=lambda *_: None, commit=lambda _: None, forget=lambda: None
    )
    made.said = []
    made.progress = SimpleNamespace(mark=None)
    made.askers = SimpleNamespace(tell=lambda **_: None)
    made.unstated = set()
    made.writer = SimpleNamespace(behind={"v": 3})

    def caught_up(spark: object, writer: Any, views: object) -> bool:
        writer.behind = {}
        return True

    monkeypatch.setattr(epochs_module, "catch_up", caught_up)
    return made


def test_a_frontier_that_was_reached_is_stated_as_soon_as_it_can(epochs: Any) -> None:
    """Else a flip to the view would be refused for as long as its topic is silent."""
    epochs.commit_empty = away
    with pytest.raises(KafkaUnavailable):
        epochs.catch_up(None)
    assert epochs.unstated == {"v"}
    epochs.commit_empty = lambda: epochs.said.append("empty")
    epochs.state_news()
    assert epochs.said == ["empty"]


def test_a_topic_that_is_declared_finite_closes_what_is_joined_too(epochs: Any) -> None:
    """An interval is open until nothing can be joined with its last row: a watermark at its end closes none."""
    day, hour = datetime(2026, 1, 5, tzinfo=UTC), timedelta(hours=1)
    vector = {Lane("t", 0): 7}
    epochs.progress = SimpleNamespace(
        epoch=Epoch(3, 1, day, "v"),
        mark=day,
        is_read_to=lambda ends, _: ends == vector,
        last_interval_end=lambda _: day + hour,
    )
    epochs.watermark = None
    nothing = timedelta(0)
    views = [SimpleNamespace(after=each, span=nothing) for each in (nothing, 2 * hour)]
    epochs.pipeline = SimpleNamespace(grid=None, views=views)
    epochs.refusals = SimpleNamespace(take_due=lambda _: [])
    epochs.commit_empty = lambda **stated: epochs.said.append((stated["watermark"], stated["reason"]))
    epochs.pulse, epochs.topics = SimpleNamespace(renew=lambda *_: None), None
    epochs.declare_idle_edge(Drained(vector, "ada", "the end"))
    assert epochs.said == [(day + 3 * hour, "drained, ada: the end")]


def test_the_tables_are_repaired_also_while_the_broker_is_away(epochs: Any) -> None:
    """An epoch that is made before it answers must not come between."""
    epochs.writer.repair_ledger = lambda: epochs.said.append("repaired") or []
    epochs.writer.master, epochs.surveys = (
        SimpleNamespace(epoch=7),
        SimpleNamespace(settle=epochs.said.append),
    )
    epochs.topics = SimpleNamespace(assert_ids=away)
    with pytest.raises(KafkaUnavailable):
        epochs.reload_log()
    assert epochs.said == ["repaired", 7]


def test_an_epoch_states_all_frontiers(epochs: Any) -> None:
    """Then nothing is left to state."""
    epochs.unstated = {"v"}
    epochs.writer.commit = lambda *_: SimpleNamespace(watermark=None, number=8)
    after = SimpleNamespace(commit=lambda whole: whole.watermark)
    assert epochs.commit_epoch(after, Epoch, None, ()) is None
    assert epochs.unstated == set()
    epochs.commit_empty = away
    epochs.state_news()


@pytest.mark.parametrize("guilty", [True, False], ids=["the record", "a full disk"])
def test_a_record_is_refused_only_if_it_makes_the_kernel_fail_by_itself(
    epochs: Any, tmp_path: Path, guilty: bool
) -> None:
    """On a full disk each attempt fails as well, and good records would be refused one by one.

    What the attempt without files has surveyed is not held with the one that writes them.
    """
    runs: list[object] = []

    def computed(*given: Any, dry: bool = False, parts: int = 0) -> KernelResult:
        runs.append((given[-1], dry))
        if guilty and not given[-1]:
            raise KernelFailed(OSError("poison"))
        return KernelResult()

    epochs.run_kernel = computed
    epochs.attempted = Attempted(tmp_path / "attempt.json")
    epochs.surveys = SimpleNamespace(settle=lambda _: runs.append("forgotten"))
    epochs.registries = SimpleNamespace(
        current_schemas=lambda: None, forget_unknown=lambda: None, want=lambda _: False
    )
    epochs.topics = SimpleNamespace(assert_same=lambda: None, assert_ids=dict)
    epochs.lookups = SimpleNamespace(current_versions=dict, topics=())
    epochs.writer = SimpleNamespace(take_number=lambda: 8, current=frozenset({"v"}), end_phase=lambda _: None)
    assert (
        epochs.run_attempt(
            None, {}, epochs.attempted, condemned="No space left on device", proved=False
        ).number
        == 8
    )
    assert runs == [("", True), "forgotten", ("No space left on device" if guilty else "", False)]
    runs.clear()
    epochs.run_kernel = lambda *_, **__: KernelResult()
    assert epochs.run_attempt(None, {}, epochs.attempted, condemned="", proved=False).number == 8


@pytest.mark.parametrize("cause", [StoreUnavailable("timed out"), SparkFailed("A task was heard twice.")])
def test_a_trial_that_our_own_work_has_ended_refuses_no_record(epochs: Any, cause: SeamlineError) -> None:
    """The index of event ids may have to be read again from the master, in a trial too."""

    def failing(*_: object, **__: object) -> KernelResult:
        raise KernelFailed(cause)

    epochs.run_kernel = failing
    epochs.surveys = SimpleNamespace(settle=lambda _: None)
    epochs.registries = SimpleNamespace(
        current_schemas=lambda: None, forget_unknown=lambda: None, want=lambda _: False
    )
    epochs.writer = SimpleNamespace(current=frozenset({"v"}))
    with pytest.raises(KernelFailed) as raised:
        epochs.passes_dry_run(None, {}, {})
    assert raised.value.cause is cause


def test_a_failure_that_nothing_can_be_done_about_ends_the_driver(driver: Any) -> None:
    """The supervisor tells it to people."""
    driver.failure = SeamlineError("the topic is another", hint="see docs")
    with pytest.raises(SeamlineError, match="the topic is another"):
        driver.restart_after_failure(Query(active=False))


def test_a_record_is_not_blamed_for_a_store_that_a_task_could_not_write_to(
    epochs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark says of it has the worker's traceback, and nothing of what was raised there."""
    said = "Traceback ...\nseamline.model.errors.StoreUnavailable: s3://lake timed out\n\tat org"
    blamed: list[object] = []
    noted: list[object] = []
    epochs.progress, epochs.excused = SimpleNamespace(vector={}), 0
    epochs.add_lanes = lambda ends: SimpleNamespace(vector={})
    epochs.attempted = SimpleNamespace(
        begin=lambda note: noted.append("begun"), finish=lambda *_: noted.append("finished"), kept=False
    )
    epochs.size = SimpleNamespace(
        condemned="", proved=False, to_json=dict, record_failure=lambda *_, **__: blamed.append(_)
    )
    epochs.size_batches = lambda frame: None
    epochs.topics = SimpleNamespace(assert_same=lambda: None, assert_ids=dict)
    epochs.writer = SimpleNamespace(timing=SimpleNamespace(begin=float))
    monkeypatch.setattr(epochs_module, "coalesce_small_epoch", lambda frame, ranges: frame)
    monkeypatch.setattr(kernel_runs, "is_frame_alive", lambda frame: True)

    def failing(*_: object, **__: object) -> None:
        raise KernelFailed(RuntimeError(said))

    epochs.run_attempt = failing
    with pytest.raises(StoreUnavailable, match="timed out"):
        epochs.process_batch(None, {Lane("t", 0): 3}, stopping=False)
    assert (blamed, noted) == ([], ["begun", "finished"])
    # What a record says may begin a line, too: it is not believed for ever.
    epochs.excused = kernel_runs.EXCUSED
    with pytest.raises(RuntimeError):
        epochs.process_batch(None, {Lane("t", 0): 3}, stopping=False)
    assert blamed
    blamed.clear()
    said = said.replace("seamline.model.errors.", "shop.")
    with pytest.raises(RuntimeError):
        epochs.process_batch(None, {Lane("t", 0): 3}, stopping=False)
    assert blamed
