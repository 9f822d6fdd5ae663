"""The second stage of Spark work: what parts are given, and what is not believed of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lives.frames import Frame
from tests.unit.records import batch, pipeline

from seamline import Global, Session, Tumbling, View, count, distinct, quantile
from seamline import sum as total
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.lake.engine.key_parts import list_part_keys, split_by_key
from seamline.lake.storage.arrow_types import partial_schema
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.errors import SeamlineError, SparkFailed, StoreRefused, StoreUnavailable
from seamline.plan.stream.epoch_parts import LEAST_STATES, StatesSeen
from seamline.spark.tasks import parts, state_parts
from seamline.spark.tasks.parts import (
    HEARD,
    Piece,
    Received,
    Row,
    encode_piece,
    encode_word,
    require_all_heard,
    run_in_parts,
)
from seamline.spark.tasks.state_parts import run_epoch_in_parts

SHOP = compile_pipeline(
    pipeline(
        "shop STRING, amount INT, at TIMESTAMP",
        views=[
            View(
                "by_shop",
                keys=["shop"],
                window=Tumbling("1 hour"),
                measures={"n": count(), "all": total("amount")},
            ),
            View("visits", keys=["shop"], window=Session("10 minutes"), measures={"n": count()}),
            View("ever", keys=[], window=Global(), measures={"n": count(), "half": quantile("amount", 0.5)}),
            View("kinds", keys=[], window=Tumbling("1 day"), measures={"shops": distinct("shop")}),
        ],
    )
)


def values(count: int, first: int = 0) -> list[bytes | None]:
    """Make records of many shops, a minute apart; every seventh has none."""
    return [
        json.dumps(
            {
                "shop": f"s{number % 37}" if number % 7 else None,
                "amount": number,
                "at": f"2024-03-01T09:{number % 60:02d}:00Z",
            }
        ).encode()
        for number in range(first, first + count)
    ]


def config_of(folder: Path, count: int) -> KernelConfig:
    """Return an epoch's task."""
    return KernelConfig(
        pipeline=SHOP,
        topic_ids={"t": "T"},
        token=1,
        epoch=5,
        committed={},
        views=frozenset(view.id for view in SHOP.views),
        master=folder / "master",
        quarantine=folder / "quarantine",
        parts=count,
        slices={view.id: folder / view.name for view in SHOP.views},
    )


def frame(*sizes: int) -> Frame:
    """Make a frame of as many partitions, with offsets that go on."""
    made, first = [], 0
    for size in sizes:
        rows = pa.Table.from_batches([batch(values(size, first))])
        at = rows.column_names.index("offset")
        made.append(rows.set_column(at, "offset", pa.array(range(first, first + size), pa.int64())))
        first += size
    return Frame(*made)


def shown(view: CompiledView, tables: list[pa.Table]) -> list[Mapping[str, object]]:
    """Present what states come to."""
    whole = states.combine_states(view, tables)
    keys = [name for name in (*(key.name for key in view.keys), "pane", "rows") if name in whole.column_names]
    found = states.present_states(view, whole, keys).to_pylist()
    return sorted(found, key=str)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_states_of_parts_are_those_of_the_whole(count: int, tmp_path: Path) -> None:
    """Of keys that are NULL, of none, of sessions and of sketches; each key and pane is in one part."""
    made = run_epoch_in_parts(frame(90, 1, 59), config_of(tmp_path, count))
    whole = run([*frame(150).rows[0].to_batches()], config_of(tmp_path / "whole", 0))
    assert made.accepted == whole.accepted and not made.states and not made.failed
    assert sum(file.rows for file in made.master) == 150 and len(made.master) == 3
    for view in SHOP.views:
        files = made.slices[view.id]
        tables = [pq.read_table(tmp_path / view.name / file.path, partitioning=None) for file in files]
        assert {(row["from_epoch"], row["to_epoch"]) for table in tables for row in table.to_pylist()} == {
            (5, 5)
        }
        assert len(files) <= count
        assert shown(view, [table.select(partial_schema(view).names) for table in tables]) == shown(
            view, whole.states[view.id]
        )
        keys = list_part_keys(view)
        places = [{tuple(row[key] for key in keys) for row in table.to_pylist()} for table in tables]
        assert sum(map(len, places)) == len(set().union(*places))


def test_a_view_that_fails_in_a_part_is_behind_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch has all others (rule 6)."""
    write = state_parts.write_slice_file

    def fail(partials: pa.Table, view: CompiledView, *given: object, **more: object) -> object:
        if view.name == "visits":
            raise ValueError("no room")
        return write(partials, view, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(state_parts, "write_slice_file", fail)
    made = run_epoch_in_parts(frame(50), config_of(tmp_path, 2))
    assert made.failed == {SHOP.view("visits").id: "ValueError: no room"}
    assert made.slices.keys() == {view.id for view in SHOP.views if view.name != "visits"}


@pytest.mark.parametrize(
    "problem", [PermissionError("not yours"), StoreUnavailable("away"), StoreRefused("no")]
)
def test_a_folder_that_cannot_be_written_leaves_its_view_behind(
    problem: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away is so for all views, and waited for; what it refuses it refuses all of them."""
    write = state_parts.write_slice_file

    def fail(partials: pa.Table, view: CompiledView, *given: object, **more: object) -> object:
        if view.name == "visits":
            raise problem
        return write(partials, view, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(state_parts, "write_slice_file", fail)
    if isinstance(problem, SeamlineError):
        with pytest.raises(type(problem)):
            run_epoch_in_parts(frame(50), config_of(tmp_path, 2))
    else:
        made = run_epoch_in_parts(frame(50), config_of(tmp_path, 2))
        assert made.failed == {SHOP.view("visits").id: "PermissionError: not yours"}


def test_rows_of_equal_keys_are_in_one_part() -> None:
    """As SQL takes them for equal: two zeros, and NaN."""
    table = pa.table({"k": [0.0, -0.0, float("nan"), -float("nan"), None, None, 1.5], "n": range(7)})
    found = split_by_key(table, ["k"], 7)
    where = {row["n"]: part for part, rows in enumerate(found) for row in rows.to_pylist()}
    assert len(where) == 7
    assert where[0] == where[1] and where[2] == where[3] and where[4] == where[5]


def speak(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """Pass rows on, as tables of a few bytes each."""
    for each in batches:
        for part, share in enumerate(split_by_key(pa.Table.from_batches([each]), ["n"], 3)):
            yield from parts.split_into_pieces(part, "rows", share)


def listen(part: int, received: Received) -> Iterator[Row]:
    """Report the sum of a part's rows."""
    numbers = [number for _, piece in received for number in piece["n"].to_pylist()]  # type: ignore[index]
    yield "sum", json.dumps([part, sum(numbers), len(numbers)]).encode()


def test_large_tables_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no row is lost or sent twice."""
    monkeypatch.setattr(parts, "PIECE_BYTES", 40)
    made = run_in_parts(
        Frame(pa.table({"n": range(100)}), pa.table({"n": range(100, 130)})),
        speak,
        listen,
        parts=3,
        memory="4g",
    )
    found = [json.loads(payload) for _, payload in made]
    assert [part for part, *_ in found] == [0, 1, 2]
    assert sum(each[1] for each in found) == sum(range(130)) and sum(each[2] for each in found) == 130


def test_parts_that_heard_different_attempts_are_not_believed() -> None:
    """Spark runs a task again whose output is lost, and some parts may have read the first."""

    def heard(part: int, *attempts: str) -> Row:
        return HEARD, json.dumps({"part": part, "attempts": attempts}).encode()

    rows = [("sum", b"1"), heard(0, "a", "b"), heard(1, "a", "b")]
    assert require_all_heard(rows, 2) == [("sum", b"1")]
    with pytest.raises(SparkFailed, match="different attempts"):
        require_all_heard([heard(0, "a", "b"), heard(1, "a", "c")], 2)
    with pytest.raises(SparkFailed, match=r"Of 2 parts \[0\] have reported"):
        require_all_heard([heard(0, "a")], 2)
    with pytest.raises(SparkFailed, match=r"Of 2 parts \[0, 0, 1\]"):
        require_all_heard([heard(0, "a"), heard(0, "a"), heard(1, "a")], 2)


def given(*said: tuple[str, int] | bytes) -> Received:
    """Make what a part is given: pieces, and words of attempts that have sent so many of them."""
    return Received(
        [
            encode_piece(0, "piece", each) if isinstance(each, bytes) else encode_word(0, *each)
            for each in said
        ]
    )


def test_a_part_that_has_heard_all_goes_on() -> None:
    """Pieces come in whatever order, and none of them need be there."""
    received = given(b"b", ("0", 1), ("1", 1), b"a", ("2", 0))
    assert [piece for _, piece in received] == [b"b", b"a"]
    assert received.attempts == {"0", "1", "2"} and received.part == 0


@pytest.mark.parametrize(
    "said",
    [
        [("0", 0), ("1", 1)],
        [("0", 0), b"b", ("1", 1), ("1", 1)],
        [("0", 0), b"b", b"b", ("1", 1)],
    ],
    ids=["a piece is lacking", "a task twice", "a piece twice"],
)
def test_a_part_that_has_not_heard_each_task_once_fails(said: list[tuple[str, int] | bytes]) -> None:
    """A row that is lost would be a number that is wrong, and nobody would know."""
    with pytest.raises(SparkFailed):
        list(given(*said))


def test_tasks_that_nobody_has_heard_are_missed() -> None:
    """Where it is known how many there are."""
    rows = [(HEARD, json.dumps({"part": 0, "attempts": ["0"]}).encode())]
    assert require_all_heard(rows, 1, 1) == []
    with pytest.raises(SparkFailed, match="1 tasks of 2"):
        require_all_heard(rows, 1, 2)


def test_epochs_go_into_parts_by_what_was_seen() -> None:
    """Many states are expected of many records where there were many; one small epoch does not change that."""
    seen = StatesSeen()
    assert not seen.are_many(10**9)
    seen = seen.take(1_000, 1_000)
    assert seen.are_many(LEAST_STATES) and not seen.are_many(LEAST_STATES - 1)
    assert seen.take(10, 0).are_many(2 * LEAST_STATES)
    for _ in range(50):
        seen = seen.take(1_000, 10)
    assert not seen.are_many(2 * LEAST_STATES)
    assert seen.take(0, 0) == seen


def test_a_report_of_parts_says_all_that_a_driver_needs(tmp_path: Path) -> None:
    """Files, and the states that there were before they were merged."""
    made = run_epoch_in_parts(frame(40, 40), config_of(tmp_path, 2))
    whole = run([*frame(80).rows[0].to_batches()], config_of(tmp_path / "whole", 0))
    assert isinstance(made, KernelResult)
    assert made.state_rows >= sum(table.num_rows for tables in whole.states.values() for table in tables)
    assert state_parts.count_states(made) == made.state_rows
