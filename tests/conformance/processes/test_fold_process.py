"""Tails in a process of their own: what users' code may cost, and that nothing else stands still for it."""

from __future__ import annotations

import functools
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from tests.conformance.processes.test_folded import compiled, rows, take_epoch
from tests.unit.costly_functions import Costly
from tests.unit.process_functions import Abandoned

from seamline import Batch, KafkaSource, Pipeline, Process, Tumbling, View, Watermark, count, sum
from seamline.lake.joins.folded_rows import fold_rows_of_keys, fold_sorted_rows, gather_key_rows
from seamline.lake.joins.past_rows import PastRows
from seamline.lake.joins.snapshots import read_snapshot_file, snapshot_schema
from seamline.lake.store.drafted_files import name_unfinished
from seamline.model.compile.processes import long_calls
from seamline.model.compile.processes.compiled_process import Budget, CompiledProcess
from seamline.model.compile.processes.long_calls import break_off_long_calls
from seamline.model.errors import MeasureFailed
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.functions.tails import Tails
from seamline.spark.stream.derived import worker_process
from seamline.spark.stream.derived.fold_process import FoldProcess
from seamline.spark.stream.derived.tail_saving import TailSaving

DAY = "2026-01-05"
HALF = Budget(0.5, 1 << 20)


def named(name: str) -> pa.Table:
    """Make one row of a name; one of x is before all others."""
    found = rows(1, seed=1)
    if name != "x":
        offset = found.schema.get_field_index("_offset")
        found = found.set_column(offset, "_offset", pa.array([7], found["_offset"].type))
    place = found.schema.get_field_index("name")
    return found.set_column(place, "name", pa.array([name], pa.string()))


@pytest.fixture
def fold() -> Iterator[Any]:
    """Return what starts folds, and end them."""
    made: list[FoldProcess] = []

    def start(process: CompiledProcess, count: int = 1) -> FoldProcess:
        made.append(FoldProcess(process, "2g", count))
        made[-1].open(float("-inf"))
        made[-1].restore([])
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.mark.parametrize("count", [1, 3])
def test_it_says_what_tails_here_would(fold: Any, count: int) -> None:
    """Also of late rows, whose keys it asks for; and it can be made again for another fold."""
    process, found = compiled(Abandoned), rows(300, seed=5)
    for _ in range(2):
        there, here = fold(process, count), Tails(process.fold, process.size)
        held, mark = found.slice(0, 0), 0
        for number in range(6):
            part = found.slice(number * 50, 50)
            mark += 8 * 3600 * 10**6
            known = held

            def older(keys: Any, known: pa.Table = known) -> list[PastRows]:
                return [PastRows(snapshot_schema(process).empty_table(), known)]

            gone = {}
            for change in take_epoch(
                process, here, part, lambda keys, known=known: gather(process, known, keys), mark
            ):
                for side in ("", "refunds"):
                    one = [item.values for item in change.added if item.side == side]
                    other = [item.values for item in change.withdrawn if item.side == side]
                    gone.setdefault(side, ([], []))[0].extend(one)
                    gone[side][1].extend(other)
            told = there.take(part, older, mark, ["", "refunds"])
            for side in ("", "refunds"):
                added, withdrawn = gone.get(side, ([], []))
                assert (told[side].added.num_rows, told[side].withdrawn.num_rows) == (
                    len(added),
                    len(withdrawn),
                )
            held = pa.concat_tables([held, part])
        there.close()


def gather(process: CompiledProcess, known: pa.Table, keys: Any) -> Any:
    """Gather the rows of keys."""
    found = gather_key_rows(process, known)
    return {key: found.get(key, []) for key in keys}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("loops", "a call took longer than the 0.5 s of timeout="),
        ("searches", "a call took longer than the 0.5 s of timeout="),
        ("tells", "a call took longer than the 0.5 s of timeout="),
        ("leaves", "KeyboardInterrupt: it"),
        ("grows", "the state of a key has about 2 MiB, more than the 1 MiB of memory="),
        ("dies", "has ended with code -11"),
    ],
)
def test_what_costs_too_much_ends_its_fold_alone(fold: Any, name: str, words: str) -> None:
    """Another one goes on beside it, and after it."""
    process = replace(compiled(Costly), budget=HALF)
    there, beside = fold(process), fold(process)
    there.take(named("x"), lambda _: [], 0, [""])
    with pytest.raises(FunctionUnusable, match=words):
        there.take(named(name), lambda _: [], 0, [""])
    there.close()
    assert beside.take(named("x"), lambda _: [], 0, [""])[""].added.num_rows == 1
    assert fold(process).take(named("x"), lambda _: [], 0, [""])[""].added.num_rows == 1


def test_a_process_serves_one_fold(fold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What users' code has left in it is nobody else's; one that has failed is ended."""
    monkeypatch.setattr(worker_process, "_idle", [])
    one, other = compiled(Costly), compiled(Costly, version="2")
    first = fold(one)
    pid = first.parts[0].worker.child.pid
    first.close()
    assert fold(other).parts[0].worker.child.pid != pid
    again = fold(one)
    assert again.parts[0].worker.child.pid == pid
    with pytest.raises(FunctionUnusable, match="KeyboardInterrupt"):
        again.take(named("leaves"), lambda _: [], 0, [""])
    assert again.parts[0].worker.child.poll() is not None
    again.close()
    assert fold(one).parts[0].worker.child.pid != pid


DRIVER = f"""
from {__name__} import *
process = compiled(Costly, timeout="1 hour")
there = FoldProcess(process, "2g")
there.open(float("-inf"))
print(there.parts[0].worker.child.pid, flush=True)
there.take(named("searches"), None, 0, [""])
"""


def test_a_process_ends_with_its_driver() -> None:
    """Though the driver is killed, and it is in the midst of what no handler of Python's would break off."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], env=env, stdout=subprocess.PIPE, text=True)
    assert driver.stdout
    with driver.stdout:
        pid = int(driver.stdout.readline())
    worker = psutil.Process(pid)
    # It was opened before it is named, so that what it does from here on is the search.
    begun = worker.cpu_times().user
    while worker.cpu_times().user < begun + 1:
        assert worker.is_running()
    driver.kill()
    driver.wait()
    worker.wait(60)


def test_a_process_whose_driver_is_gone_does_not_begin() -> None:
    """It takes most of a second to start, in which nothing tells it."""
    code = "import socket; from seamline.spark.stream.derived.fold_worker import end_with\n"
    code += "own, other = socket.socketpair(); {}; end_with(own.fileno()); print('goes on')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    said = [
        subprocess.run(
            [sys.executable, "-c", code.format(first)], env=env, capture_output=True, text=True, check=False
        ).stdout
        for first in ("pass", "other.close()")
    ]
    assert said == ["goes on\n", ""]


def test_a_call_that_takes_too_long_is_broken_off_in_builds_too() -> None:
    """And where a number is explained, or audited."""
    process = replace(compiled(Costly), budget=HALF)
    with pytest.raises(FunctionUnusable, match="longer than the 0.5 s"):
        list(fold_sorted_rows(process, named("loops").to_batches(), 0))
    with pytest.raises(MeasureFailed, match="longer than the 0.5 s"):
        list(fold_rows_of_keys(process, named("loops"), 0))
    with break_off_long_calls(process) as own:
        assert own.fold.watch is not process.fold.watch
    assert len(list(fold_rows_of_keys(process, named("x"), 0))) == 1


SOURCE = KafkaSource(
    name="clicks",
    topic="clicks",
    schema="user STRING, total DECIMAL(10,2), name STRING, at TIMESTAMP",
    event_time="at",
    watermark=Watermark("10 minutes", idle_after="1 minute"),
)
HOUR = Tumbling("1 hour")
SHOP = Pipeline(
    name="shop",
    source=[SOURCE],
    derive=[
        Process("carts", of="clicks", by=Abandoned, keys=["user"]),
        Process("costly", of="clicks", by=Costly, keys=["user"], timeout="1 second"),
    ],
    views=[
        View("left", of="carts", keys=["user"], window=HOUR, measures={"lost": sum("amount")}),
        View("counted", of="costly", keys=["user"], window=HOUR, measures={"n": count()}),
    ],
    batch=Batch("1 day", DAY),
)


@pytest.mark.parametrize("costs", ["loops", "searches", "dies"])
def test_other_views_go_on_where_one_stands_still(
    scenario: Any, spark: Any, costs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its view is behind, with the words of what happened; it is tried again, by tasks, and ends nothing else there."""
    monkeypatch.setattr(long_calls, "FOR_EVER", 3.0)
    life = scenario(SHOP, spark=spark, now="2026-01-09")

    def click(at: str, name: str) -> dict[str, object]:
        return {"user": "ada", "total": "2", "name": name, "at": f"{DAY}T{at}:00Z"}

    life.send(click("10:00", "x"), topic="clicks")
    life.epoch()
    life.send(click("11:00", costs), topic="clicks")
    life.epoch()
    engine = life.engine
    counted, left = (life.pipeline.view(name).id for name in ("counted", "left"))
    assert {*engine.writer.behind} == {counted}
    long = "tests.unit.costly_functions:Costly: a call took longer than the 1 s of timeout="
    assert ("has ended with code -11" if costs == "dies" else long) in engine.writer.errors[counted]
    engine.catch_up()
    assert {*engine.writer.behind} == {counted}
    assert (
        f"FunctionUnusable: {long}" if costs == "loops" else "Python worker exited unexpectedly"
    ) in engine.writer.errors[counted]
    life.send(click("12:00", "x"), topic="clicks")
    life.epoch()
    assert engine.writer.frontiers[left] == 2
    assert [row["lost"] for row in life.answer("left")] == [2, 2]
    assert [row["n"] for row in life.answer("counted")] == [1]


def test_a_fold_goes_on_while_its_snapshots_are_written(fold: Any, tmp_path: Path) -> None:
    """What is written is what it had come to, and its driver is told of what went wrong."""
    process, found, mark = compiled(Abandoned), rows(300, seed=5), 18 * 3600 * 10**6
    there = fold(process)
    there.take(found.slice(0, 100), lambda _: [], mark, [""])
    path = tmp_path / "deep" / "1.parquet"
    assert there.save([str(path)])
    there.take(found.slice(100, 0), lambda _: [], 10**15, [""])
    assert there.find_saved(wait=True) == ""
    here = Tails(process.fold, process.size)
    here.take(gather_key_rows(process, found.slice(0, 100)), {}, mark)
    assert read_snapshot_file(process, path, 0) == dict(here.list_snapshots())
    (tmp_path / "file").touch()
    there.save([str(tmp_path / "file" / "1.parquet")])
    assert "FileExistsError" in there.find_saved(wait=True)
    # That is told until the next ones are begun.
    assert "FileExistsError" in there.find_saved()
    assert [*path.parent.iterdir()] == [path]


def test_another_number_of_processes_goes_on_from_what_some_have_written(fold: Any, tmp_path: Path) -> None:
    """Each takes its keys from all files, and all together have each key once."""
    process, found, mark = compiled(Abandoned), rows(300, seed=5), 18 * 3600 * 10**6
    there = fold(process, 2)
    there.take(found, lambda _: [], mark, [""])
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    there.save(paths)
    assert there.find_saved(wait=True) == ""
    halves = [read_snapshot_file(process, Path(each), 0) for each in paths]
    assert all(halves) and not halves[0].keys() & halves[1].keys()
    whole = halves[0] | halves[1]
    parts = [read_snapshot_file(process, Path(each), 0, (n, 3)) for n in range(3) for each in paths]
    assert sum_of(map(len, parts)) == len(whole) == len({key for each in parts for key in each})
    further = {}
    for number in (1, 3):
        again = fold(process, number)
        assert again.open(mark, paths)
        keys = again.restore([])
        change = again.take(found.slice(0, 0), lambda _: [], 10**15, [""])[""]
        further[number] = keys, sorted(map(str, change.added.to_pylist()))
    assert further[1] == further[3] and all(further[1])
    assert not fold(process, 2).open(mark, [*paths, str(tmp_path / "none.parquet")])


def sum_of(counts: Iterator[int]) -> int:
    """Add up; ``sum`` is a measure here."""
    return functools.reduce(operator.add, counts, 0)


def test_all_processes_have_answered_where_one_cannot_go_on(fold: Any) -> None:
    """Else they would be asked something else while they are at it."""
    process = replace(compiled(Costly), budget=HALF)
    there = fold(process, 3)
    with pytest.raises(FunctionUnusable, match="a call took longer than"):
        there.take(named("loops"), lambda _: [], 0, [""])
    ended = [part.worker.child.poll() is not None for part in there.parts]
    assert ended.count(True) == 1
    assert not any(part.worker.asking for part, gone in zip(there.parts, ended, strict=True) if not gone)


def test_a_machine_without_room_for_a_child_folds_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is told, and tried again."""

    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    process = compiled(Abandoned)
    saving, tails = TailSaving(()), Tails(process.fold, process.size)
    with monkeypatch.context() as crowded:
        crowded.setattr(os, "fork", fork)
        saving.begin(tmp_path / "1.parquet", process, tails)
    assert saving.look() == "BlockingIOError: [Errno 11] Resource temporarily unavailable"
    saving.begin(tmp_path / "1.parquet", process, tails)
    assert saving.look(wait=True) == ""


def test_a_child_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    """Each would leave a file as large as all states, and the next one too."""
    saving, child = TailSaving(()), subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    told, tell = os.pipe()
    os.close(tell)
    saving.child, saving.told, saving.path = child.pid, told, tmp_path / "1.parquet"
    draft = name_unfinished(saving.path, child.pid)
    draft.write_bytes(b"half")
    assert saving.look() is None
    child.kill()
    assert saving.look(wait=True) == "the process that writes them has ended with code -9"
    assert not draft.exists()
    child.returncode = -9
