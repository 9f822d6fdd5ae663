"""The epoch kernel in plain Python: what is judged, written, counted and reported, without Spark or Kafka."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import own_measures
from tests.unit.records import batch as raw_batch
from tests.unit.records import kernel_run, pipeline

from seamline.kernel import raw
from seamline.kernel.epoch_kernel import run
from seamline.kernel.formats.json import JsonReader
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import states
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource, Rule
from seamline.model.definition.windows import Tumbling
from seamline.model.measures import Measure, avg, count, distinct, formula, own, quantile, sum
from seamline.model.protocol.offsets import Lane
from seamline.spark.tasks import task

ARRIVED = datetime(2024, 3, 1, 12, tzinfo=UTC)
GOOD = {
    "id": 1,
    "shop": "a",
    "amount": 2.5,
    "items": 3,
    "price": 12.25,
    "paid": True,
    "day": "2024-03-01",
    "at": "2024-03-01T10:20:30Z",
    "raw": "AP8=",
}
PIPELINE = compile_pipeline(
    Pipeline(
        name="shops",
        source=KafkaSource(
            topic="sales",
            schema=(
                "id BIGINT NOT NULL, shop STRING, amount DOUBLE, items INT, price DECIMAL(6,2), paid BOOLEAN, "
                "day DATE, at TIMESTAMP, raw BINARY"
            ),
            event_time="at",
            max_future="1 hour",
        ),
        rules=[Rule("has items", "items > 0"), Rule("fair", "amount / items < 100")],
        views=[
            View(
                "by_shop",
                keys=["shop"],
                window=Tumbling("1 hour"),
                where="paid",
                measures={"n": count(), "total": sum("items"), "mean": avg("amount / (items - 5)")},
            ),
            View(
                "overall",
                keys=[],
                window=Tumbling("1 day"),
                measures={"shops": distinct("shop"), "middle": quantile("amount", 0.5)},
            ),
        ],
        batch=Batch(interval="1 day", start="2024-01-01"),
    )
)


def config(
    folder: Path, *, pipeline: CompiledPipeline = PIPELINE, held: int = 0, condemned: str = ""
) -> KernelConfig:
    """Make a task's configuration; the tables are two empty folders."""
    for name in ("master", "quarantine"):
        (folder / name).mkdir(exist_ok=True)
    return KernelConfig(
        pipeline=pipeline,
        topic_ids={"sales": "T", "returns": "R", "t": "T"},
        token=7,
        epoch=42,
        committed={Lane("T", 0): held},
        views=frozenset(view.id for view in pipeline.views),
        master=folder / "master",
        quarantine=folder / "quarantine",
        condemned=condemned,
    )


def batch(values: Sequence[bytes | None], *, first: int = 0) -> pa.RecordBatch:
    """Make raw Kafka rows as Spark hands them over."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(['[{"key":"h","value":"AA=="},{"key":"none"}]'] * count),
            "topic": pa.array(["sales"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(first, first + count), pa.int64()),
            "timestamp": pa.array([ARRIVED] * count, pa.timestamp("us", "UTC")),
        }
    )


def sale(**changes: object) -> bytes:
    """Write a good record with some fields changed."""
    return json.dumps({**GOOD, **changes}).encode()


def without(name: str) -> bytes:
    """Write a good record without a field."""
    return json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()


def told(folder: Path, result: KernelResult) -> list[tuple[int, str]]:
    """Read (offset, reason) from the quarantine files."""
    rows = [
        row
        for file in result.quarantine
        for row in pq.read_table(folder / "quarantine" / file.path).to_pylist()
    ]
    return [(row["_offset"], row["_reason"]) for row in rows]


EDIT = st.tuples(
    st.floats(0, 1),
    st.one_of(
        st.sampled_from(['"', "{", "}", "[", ",", ":", "\\", "NaN", "/**/", "\\u", "1e9", " "]),
        st.characters(codec="utf-8"),
    ),
    st.booleans(),
)
"""Where, what, and whether in the place of a letter."""
DUCKDB = duckdb.connect()
REFUSED = [
    (b"", "empty value"),
    (None, "tombstone"),
    (b"\xff\xfe{}", "not utf-8"),
    (b'{"id": 1', "malformed json"),
    (b"  ", "malformed json"),
    (b"[1, 2]", "malformed json"),
    (b'"text"', "malformed json"),
    (b"null", "malformed json"),
    (b'{"id": "\\ud800"}', "malformed json"),
    *((("x" * at + "\u2028" * 99).encode(), "malformed json") for at in range(3)),
    (without("id"), "missing field id"),
    (sale(id=None), "missing field id"),
    (without("at"), "missing field at"),
    (sale(id="1"), "mistyped field id"),
    (sale(id=1.5), "mistyped field id"),
    (sale(id=2**63), "mistyped field id"),
    (sale(id=True), "mistyped field id"),
    (sale(items=2**31), "mistyped field items"),
    (sale(shop=5), "mistyped field shop"),
    (sale(shop={"name": "a"}), "mistyped field shop"),
    (sale(amount="2.5"), "mistyped field amount"),
    (sale(amount=float("nan")), "mistyped field amount"),
    (sale(amount=float("inf")), "mistyped field amount"),
    (sale().replace(b'"amount": 2.5', b'"amount": 1e400'), "mistyped field amount"),
    (sale(price=12.255), "mistyped field price"),
    (sale(price=123456.5), "mistyped field price"),
    (sale(paid="true"), "mistyped field paid"),
    (sale(paid=1), "mistyped field paid"),
    (sale(day="2024-02-30"), "mistyped field day"),
    (sale(at="yesterday"), "mistyped field at"),
    (sale(at=1709288430), "mistyped field at"),
    (sale(at="2024-03-01T10:20:30 Europe/Berlin"), "mistyped field at"),
    (sale(raw="%%%"), "mistyped field raw"),
    (sale(at=None), "null event time"),
    (sale(at="2023-12-31T23:59:59.999999Z"), "event time before start"),
    (sale(at="2024-03-01T13:00:00.000001Z"), "event time in the future"),
    (sale(items=-1), "rule has items"),
    (sale(items=None), "rule has items"),
    (sale(amount=1e6), "rule fair"),
    (sale(items=5), "error in by_shop.mean"),
]


@pytest.mark.parametrize(
    ("value", "reason"), REFUSED, ids=[f"{at}-{reason}" for at, (_, reason) in enumerate(REFUSED)]
)
def test_a_bad_record_is_refused_with_its_reason(tmp_path: Path, value: bytes | None, reason: str) -> None:
    """Nothing a producer sends may stop a stream or slip into the numbers."""
    result = run([batch([sale(), value, sale()])], config(tmp_path))
    assert told(tmp_path, result) == [(1, reason)]
    assert result.refused == {reason: 1}
    assert result.accepted == {"2024-03-01T00:00:00Z": 2}


@pytest.mark.parametrize("at", ["9999-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_no_event_is_of_a_day_after_which_there_is_none(tmp_path: Path, at: str) -> None:
    """It is what people write for never: with one in the log, no plan and no answer was ever made again."""
    far = replace(PIPELINE.definition.source, max_future="3000000 days")
    judging = replace(config(tmp_path), pipeline=compile_pipeline(replace(PIPELINE.definition, source=far)))
    result = run([batch([sale(at=at), sale(at="9998-12-31T23:59:59.999999Z")])], judging)
    assert result.refused == {"event time in the future": 1}
    assert result.accepted == {"9998-12-31T00:00:00Z": 1}
    last = judging.pipeline.grid.named("9999-12-31T00:00:00Z")
    assert (last.id, last.end) == ("9999-12-31T00:00:00Z", datetime.max.replace(tzinfo=UTC))


def test_records_are_judged_alike_by_whoever_trusts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Malformed JSON is looked for only where there is some: neither the records before it nor those after differ."""
    asked: list[bool] = []

    def seen(reader: JsonReader) -> Iterator[str]:
        asked.append(reader.trusting)
        return opened(reader)

    opened = JsonReader.open_record
    monkeypatch.setattr(JsonReader, "open_record", seen)
    monkeypatch.setattr(raw, "CHUNK", 1)
    values = [sale(), b'{"id": 1', sale(shop="b"), sale(id="1"), b"", sale()]
    result = run([batch([value], first=at) for at, value in enumerate(values)], config(tmp_path))
    assert asked == [True, True, False, False, False, False, False]
    assert told(tmp_path, result) == [(1, "malformed json"), (3, "mistyped field id"), (4, "empty value")]
    assert result.accepted.total() == 3


@given(
    text=st.sampled_from([sale().decode(), "[]", ' {"a": "\\ud83d\\ude00"} ']),
    edits=st.lists(EDIT, max_size=3),
)
def test_what_a_careful_reader_refuses_fails_a_trusting_one(
    text: str, edits: list[tuple[float, str, bool]]
) -> None:
    """That JSON's functions fail on a text is to say that it is no JSON, and they fail on all that is none."""
    for place, piece, instead in edits:
        at = int(place * len(text))
        text = text[:at] + piece + text[at + instead :]
    [(valid,)] = DUCKDB.execute("SELECT json_valid($1)", [text]).fetchall()
    for asked in ("json_type($1::VARCHAR, ['$.id'])", "json_extract_string($1::VARCHAR, ['$.id'])"):
        try:
            DUCKDB.execute(f"SELECT {asked}", [text]).fetchall()
        except (duckdb.InvalidInputException, UnicodeDecodeError):
            assert not valid
        else:
            assert valid


def test_a_part_that_is_wrong_is_found_though_its_column_has_a_value(tmp_path: Path) -> None:
    """Every column of the record has one."""
    made = compile_pipeline(
        pipeline("at TIMESTAMP NOT NULL, lines ARRAY<STRUCT<sku: STRING NOT NULL, n: INT>>")
    )
    good = b'{"at": "2024-03-01T10:00:00Z", "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": null}]}'
    values = [good, good.replace(b"null", b'"2"'), good.replace(b'"b"', b"null")]
    result = kernel_run(tmp_path, made, raw_batch(values))
    assert result.refused == {"mistyped field lines": 2}
    assert result.accepted.total() == 1


def test_the_first_reason_in_the_order_of_the_vocabulary_is_given(tmp_path: Path) -> None:
    """One record counts under one reason, and always the same one."""
    value = json.dumps({"shop": 5, "at": "1999-01-01"}).encode()
    assert run([batch([value])], config(tmp_path)).refused == {"missing field id": 1}


def test_an_error_counts_only_where_the_view_would_evaluate_it(tmp_path: Path) -> None:
    """A row that ``where`` leaves out cannot fail in that view's measures."""
    result = run([batch([sale(items=5, paid=False)])], config(tmp_path))
    assert not result.refused
    assert result.accepted.total() == 1


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2024-03-01", datetime(2024, 3, 1, tzinfo=UTC)),
        ("2024-03-01T10:20", datetime(2024, 3, 1, 10, 20, tzinfo=UTC)),
        ("2024-03-01 10:20:30", datetime(2024, 3, 1, 10, 20, 30, tzinfo=UTC)),
        ("2024-03-01T10:20:30.123456Z", datetime(2024, 3, 1, 10, 20, 30, 123456, tzinfo=UTC)),
        ("2024-03-01T10:20:30+02:00", datetime(2024, 3, 1, 8, 20, 30, tzinfo=UTC)),
        ("2024-03-01T01:20:30+0530", datetime(2024, 2, 29, 19, 50, 30, tzinfo=UTC)),
        ("2024-03-01T03:20:30-05", datetime(2024, 3, 1, 8, 20, 30, tzinfo=UTC)),
    ],
)
def test_event_times_are_utc_unless_they_say_otherwise(
    tmp_path: Path, written: str, instant: datetime
) -> None:
    """An event in the wrong hour is in the wrong window for ever."""
    result = run([batch([sale(at=written)])], config(tmp_path))
    assert result.max_event_time == {Lane("T", 0): instant}
    assert list(result.accepted) == [instant.strftime("%Y-%m-%dT00:00:00Z")]


def test_rows_keep_all_that_came_and_what_was_read_from_it(tmp_path: Path) -> None:
    """The master can be judged again from its raw columns, so they must be what Kafka had."""
    result = run([batch([sale()], first=9)], config(tmp_path))
    (row,) = pq.read_table(tmp_path / "master" / result.master[0].path).to_pylist()
    assert row["_value"] == sale()
    assert row["_headers"] == [{"key": "h", "value": b"\x00"}, {"key": "none", "value": None}]
    assert (row["_topic_id"], row["_partition"], row["_offset"], row["_epoch"]) == ("T", 0, 9, 42)
    assert row["_record_version"] == PIPELINE.record_version
    assert (row["id"], row["price"], row["paid"], row["raw"]) == (1, pytest.approx(12.25), True, b"\x00\xff")
    facts = json.loads(result.master[0].stats)
    places = {"_partition": 0, "_offset": 9, "_epoch": 42, "_event_time": "2024-03-01T10:20:30.000Z"}
    assert facts["minValues"].items() >= places.items()
    assert facts["maxValues"].items() >= places.items()


def test_what_the_master_holds_is_dropped(tmp_path: Path) -> None:
    """A replayed range must not count a record twice."""
    result = run([batch([sale()] * 5, first=10)], config(tmp_path, held=13))
    assert result.accepted.total() == 2
    offsets = pq.read_table(tmp_path / "master" / result.master[0].path)["_offset"].to_pylist()
    assert offsets == [13, 14]


def test_topics_read_as_one_keep_their_lanes_apart(tmp_path: Path) -> None:
    """Offsets of two topics are alike: what one of them holds says nothing of the other."""
    sales, returns = batch([sale()] * 5, first=10), batch([sale(id=2)] * 3, first=10)
    at = returns.schema.get_field_index("topic")
    returns = returns.set_column(at, "topic", pa.array(["returns"] * 3))
    result = run([sales, returns], config(tmp_path, held=13))
    rows = pq.read_table(
        tmp_path / "master" / result.master[0].path, columns=["_topic", "_topic_id", "_offset"]
    )
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        *(("sales", "T", at) for at in (13, 14)),
        *(("returns", "R", at) for at in (10, 11, 12)),
    ]
    assert set(result.max_event_time) == {Lane("T", 0), Lane("R", 0)}


def test_nothing_read_leaves_no_file(tmp_path: Path) -> None:
    """An empty task must not litter the tables' folders."""
    result = run([], config(tmp_path))
    assert (result.master, result.quarantine, result.states) == ([], [], {})
    assert not list(tmp_path.rglob("*.parquet"))


def test_many_batches_give_the_states_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by chunks, and chunks must not show in the numbers."""
    values = [sale(id=at, shop="abc"[at % 3], amount=float(at)) for at in range(50)]
    whole = run([batch(values)], config(tmp_path))
    monkeypatch.setattr(raw, "CHUNK", 7)
    pieces = run([batch(values[at : at + 4], first=at) for at in range(0, 50, 4)], config(tmp_path))
    for view in PIPELINE.views:
        keep = [key.name for key in view.keys] + ["pane", "rows"]
        order = [(name, "ascending") for name in keep]
        one, other = (
            states.present_states(view, each.states[view.id][0], keep).sort_by(order)
            for each in (whole, pieces)
        )
        assert one == other
    assert len(pieces.master) == 1


def test_a_view_that_fails_harms_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One broken view must not stop the ingest (rule 6)."""
    sound = states.compute_row_states

    def partial(con: object, view: object, relation: str, **named: object) -> pa.Table:
        if view.name == "by_shop":  # type: ignore[attr-defined]
            raise ValueError("no")
        return sound(con, view, relation, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(states, "compute_row_states", partial)
    result = run([batch([sale()])], config(tmp_path))
    broken, fine = PIPELINE.views
    assert result.failed == {broken.id: "ValueError: no"}
    assert result.accepted.total() == 1
    assert result.states[fine.id][0].num_rows == 1


def of_amounts(**measures: Measure) -> CompiledPipeline:
    """Compile two views, one of these measures."""
    day = Tumbling("1 day")
    views = [View("mine", [], day, measures), View("fine", [], day, {"n": count()})]
    return compile_pipeline(pipeline("amount DOUBLE, at TIMESTAMP", views=views))


def amounts(*values: float) -> list[bytes]:
    """Write a record for each amount."""
    return [json.dumps({"amount": each, "at": GOOD["at"]}).encode() for each in values]


def test_an_own_measure_that_cannot_merge_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its laws were tried on small values: what fails in the stream is that view's trouble, with the reason."""
    monkeypatch.setattr(raw, "CHUNK", 1)
    made = of_amounts(reach=own("amount", own_measures.Fragile))
    values = amounts(1e7, 2e7)
    rows = raw_batch(values)
    result = run([rows.slice(0, 1), rows.slice(1)], config(tmp_path, pipeline=made))
    mine, fine = made.views
    assert list(result.failed) == [mine.id]
    assert "Fragile.plus((10000000.0, 10000000.0)" in result.failed[mine.id]
    assert "OverflowError: too large" in result.failed[mine.id]
    assert result.states[fine.id][0]["n__n"].to_pylist() == [2]


def test_an_error_in_a_formulas_part_refuses_the_record(tmp_path: Path) -> None:
    """As in any measure: the part is a measure that has no name of its own."""
    made = of_amounts(m=formula("try_divide(total, n)", total=sum("1 / amount"), n=count()))
    result = kernel_run(tmp_path, made, raw_batch(amounts(0, 2)))
    assert result.refused == {"error in mine.m": 1}
    shown = states.present_states(made.views[0], result.states[made.views[0].id][0], [])
    assert shown["m"].to_pylist() == [0.5]


def test_a_dry_run_does_all_of_the_work_and_leaves_no_file(tmp_path: Path) -> None:
    """What cannot be written to a file fails there, too; a disk that is full does not."""
    wet = config(tmp_path)
    dry = replace(wet, dry=True, master=tmp_path / "nowhere", quarantine=tmp_path / "nowhere")
    batches = [batch([sale(), sale(items=-1)])]
    found, expected = run(batches, dry), run(batches, wet)
    assert (found.accepted, found.refused) == (expected.accepted, expected.refused)
    assert (found.master, found.quarantine) == ([], [])
    assert not (tmp_path / "nowhere").exists()


def test_condemned_records_are_all_kept_in_the_quarantine(tmp_path: Path) -> None:
    """A record that kills the kernel must be kept, and must not stop the stream (rule 17)."""
    result = run([batch([sale()])], config(tmp_path, condemned="OSError: x"))
    assert told(tmp_path, result) == [(0, "kernel error")]
    assert result.master == []


def test_the_configuration_travels(tmp_path: Path) -> None:
    """Tasks get it pickled."""
    made = config(tmp_path)
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_chunk_ends_where_it_would_be_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large records are judged a few at a time."""
    monkeypatch.setattr(raw, "CHUNK_BYTES", 5_000)
    batches = [batch([b"x" * 2_000]) for _ in range(7)]
    assert [chunk.num_rows for chunk in raw.combine_small_batches(batches)] == [3, 3, 1]


def test_a_result_tells_how_large_records_are(tmp_path: Path) -> None:
    """Of the task with the largest ones."""
    small = run([batch([sale()] * 100)], config(tmp_path))
    large = run([batch([sale(shop="s" * 100_000)])], config(tmp_path))
    small.add(large)
    assert 100_000 < small.record_bytes < 101_000


def test_a_report_reads_back_as_it_was(tmp_path: Path) -> None:
    """What the task found is what the driver commits."""
    result = run([batch([sale(), b"", sale(shop="b")])], config(tmp_path))
    back = task.merge_task_reports((row["kind"], row["payload"]) for row in task.encode_result_rows(result))
    assert back == result
