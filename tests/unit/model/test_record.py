"""From record to row: derived columns, rules, sides and selection, computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import batch, judged, kernel_run, parsed, pipeline

from seamline import Batch, CountWindow, Rule, Tumbling, View, count, side, sum
from seamline.cli import main
from seamline.lake.engine import states
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import fingerprint_view, record_version
from seamline.model.errors import NotFound, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import format_utc_instant
from seamline.spark.tasks import task

SCHEMA = "id BIGINT NOT NULL, amount DOUBLE, at TIMESTAMP, cart STRUCT<shop: STRING, tags: ARRAY<STRING>>"
VIEW = View(
    "by_shop",
    keys=["shop"],
    window=Tumbling("1 hour"),
    where="amount < 1000",
    measures={"n": count(), "cents": sum("cents")},
)
SHOP = pipeline(
    SCHEMA,
    event_time="hour",
    event_id=["uid"],
    select={
        "shop": "cart.shop",
        "cents": "CAST(round(amount * 100) AS BIGINT)",
        "hour": "date_trunc('hour', at)",
        "uid": "coalesce(header('uid'), _key)",
        "first_tag": "cart.tags[0]",
        "twice": "cents * 2",
    },
    rules=[Rule("a shop", "shop IS NOT NULL")],
    where="amount > 0 OR shop = 'x'",
    side={"tests": "first_tag = 'test'", "refunds": "amount < 0"},
    views=[VIEW],
)


def sale(
    id: int = 1, amount: Any = 2.5, shop: Any = "a", tags: Any = ("p",), at: str = "2024-03-01T10:20:30Z"
) -> bytes:
    cart = {"shop": shop, "tags": list(tags) if tags is not None else None}
    return json.dumps({"id": id, "amount": amount, "at": at, "cart": cart}).encode()


def headers(**named: str) -> str:
    """Write headers as Spark hands them over: the value in base64."""
    return json.dumps([{"key": name, "value": value} for name, value in named.items()])


def test_derived_columns_are_columns() -> None:
    """Rules, event time, id and views may use them, and each other from the top down."""
    (row,) = judged(SHOP, [sale()], keys=[b"k1"], headers=[headers(uid="dTE=", other="/w==")])
    assert parsed(row) | {"cart": None} == {
        "id": 1,
        "amount": 2.5,
        "at": datetime(2024, 3, 1, 10, 20, 30, tzinfo=UTC),
        "cart": None,
        "shop": "a",
        "cents": 250,
        "hour": datetime(2024, 3, 1, 10, tzinfo=UTC),
        "uid": "u1",
        "first_tag": "p",
        "twice": 500,
    }
    assert row["_event_time"] == row["hour"]
    assert (row["_selected"], row["_side"]) == (True, None)


def test_key_and_headers_are_text_or_nothing() -> None:
    """The last header of a name counts, as Kafka's own clients have it; bytes that are no text are NULL."""
    twice = '[{"key":"uid","value":"YQ=="},{"key":"uid","value":"Yg=="}]'
    rows = judged(
        SHOP,
        [sale()] * 5,
        keys=[b"k", b"k", b"\xff", None, b"k"],
        headers=[twice, "[]", None, headers(uid="YQ=="), '[{"key":"uid","value":"/w=="},{"key":"uid"}]'],
    )
    assert [row["uid"] if isinstance(row, dict) else row for row in rows] == [
        "b",
        "k",
        ["missing field uid", ""],
        "a",
        "k",
    ]


def test_kafkas_own_columns_can_be_named() -> None:
    """Where a record came from may be part of what it means."""
    made = pipeline(
        SCHEMA,
        select={"source": "_topic", "part": "_partition", "place": "_offset", "came": "_kafka_timestamp"},
        where="_offset < 1",
    )
    rows = judged(made, [sale(), sale()])
    assert [(row["source"], row["part"], row["place"], row["_selected"]) for row in rows] == [
        ("t", 0, 0, True),
        ("t", 0, 1, False),
    ]
    assert rows[0]["came"] == rows[0]["_kafka_timestamp"]


@pytest.mark.parametrize(
    ("record", "selected", "side"),
    [
        (sale(), True, None),
        (sale(amount=0), False, None),
        (sale(amount=None), False, None),
        (sale(amount=None, shop="x"), True, None),
        (sale(amount=-1), False, "refunds"),
        (sale(amount=-1, shop="x"), False, "refunds"),
        (sale(tags=["test"]), False, "tests"),
        (sale(tags=["test"], amount=-1), False, "tests"),
    ],
)
def test_a_record_is_selected_or_on_one_side_or_on_none(
    record: bytes, selected: bool, side: str | None
) -> None:
    """Every accepted record is in the master, whatever becomes of it."""
    (row,) = judged(SHOP, [record], keys=[b"k"])
    assert (row["_selected"], row["_side"]) == (selected, side)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (sale(tags=[]), "error in select first_tag"),
        (sale(amount=1e300), "error in select cents"),
        (sale(shop=None), "rule a shop"),
        (sale(at="2023-12-31T23:59:59Z"), "event time before start"),
    ],
)
def test_a_derived_column_without_a_value_refuses_the_record(record: bytes, reason: str) -> None:
    """An error is not a NULL: Spark would have stopped."""
    assert judged(SHOP, [record], keys=[b"k"])[0][0] == reason


def test_an_error_counts_only_where_the_record_gets_to() -> None:
    """A record on a side is not asked what where= would have said; one that is not selected, not what views say."""
    made = pipeline(
        SCHEMA,
        where="10 / amount > 1",
        side={"zero": "amount = 0"},
        views=[View("v", keys=[], window=Tumbling("1 day"), measures={"m": sum("id / (amount - 20)")})],
    )
    rows = judged(made, [sale(amount=0), sale(amount=20), sale(amount=5)])
    assert [(row["_selected"], row["_side"]) for row in rows] == [
        (False, "zero"),
        (False, None),
        (True, None),
    ]


def test_views_see_selected_rows_and_the_ledger_counts_all(tmp_path: Path) -> None:
    """Rows accepted are what the build will read; what is in no view is marked, not gone."""
    made = compile_pipeline(SHOP)
    values = [sale(), sale(amount=-1), sale(amount=0), sale(amount=5000), sale(amount=4, shop="b")]
    result = kernel_run(tmp_path, made, batch(values, keys=[b"k"] * 5))
    assert result.accepted == {"2024-03-01T00:00:00Z": 5}
    (view,) = made.views
    shown = states.present_states(view, result.states[view.id][0], ["shop", "rows"]).to_pylist()
    assert sorted((row["shop"], row["rows"], row["n"], int(row["cents"])) for row in shown) == [
        ("a", 1, 1, 250),
        ("b", 1, 1, 400),
    ]


def test_the_masters_table_takes_in_new_columns_and_no_other_types(tmp_path: Path) -> None:
    """A definition that asks for more must not stop at the table it wrote before."""
    layout = Layout(tmp_path, "records")
    before = Master.ensure(layout, compile_pipeline(pipeline("id BIGINT, at TIMESTAMP")))
    assert "shop" not in {field.name for field in before.table.handle.schema().fields}
    after = Master.ensure(layout, compile_pipeline(SHOP))
    names = {field.name for field in after.table.handle.schema().fields}
    assert {"shop", "_selected", "_side", "cart", "id", "at"} <= names
    assert Master.ensure(layout, compile_pipeline(SHOP)).table.version == after.table.version
    with pytest.raises(ProtocolError, match="'id' of master has type"):
        Master.ensure(layout, compile_pipeline(pipeline("id STRING, at TIMESTAMP")))


LINES = pipeline(
    "at TIMESTAMP, skip BOOLEAN, lines ARRAY<STRUCT<sku: STRING, n: INT, of: INT>>",
    where="skip IS NOT TRUE",
    views=[
        View(
            "by_sku",
            keys=["sku"],
            window=Tumbling("1 day"),
            where="line.n > 0",
            explode={"line": "lines"},
            measures={"rows_n": count(), "pieces": sum("line.n"), "share": sum("line.n / line.of")},
        )
    ],
    select={"sku": "'all'"},
)


def order(lines: Any, **more: Any) -> bytes:
    return json.dumps({"at": "2024-03-01", "lines": lines, **more}).encode()


def test_a_view_explodes_its_input_and_not_the_master(tmp_path: Path) -> None:
    """One record is one row of the master and of the ledger, however many items it has."""
    values = [
        order([{"sku": "a", "n": 2, "of": 4}, {"sku": "b", "n": 3, "of": 3}, {"sku": "c", "n": 0}]),
        order([]),
        order(None),
        order([{"sku": "a", "n": 5, "of": 5}, None]),
        order([{"sku": "a", "n": 7, "of": 7}], skip=True),
    ]
    made = compile_pipeline(LINES)
    result = kernel_run(tmp_path, made, batch(values))
    assert result.accepted == {"2024-03-01T00:00:00Z": 5}
    assert not result.refused
    (view,) = made.views
    (row,) = states.present_states(view, result.states[view.id][0], ["rows"]).to_pylist()
    assert row == {"rows": 3, "rows_n": 3, "pieces": 10, "share": 2.5}


def test_an_item_on_which_a_measure_fails_refuses_its_record() -> None:
    """Half of a record must not be counted."""
    good, bad, left_out = judged(
        LINES,
        [
            order([{"n": 1, "of": 1}]),
            order([{"n": 1, "of": 1}, {"n": 1, "of": 0}]),
            order([{"n": 0, "of": 0}]),
        ],
    )
    assert bad[0] == "error in by_sku.share"
    assert isinstance(good, dict) and isinstance(left_out, dict)


def event(at: str) -> bytes:
    return json.dumps({"at": at}).encode()


def test_event_time_may_be_that_of_arrival_or_of_processing(tmp_path: Path) -> None:
    """A source without a time of its own still has one, and the row keeps it for the batch layer."""
    (row,) = judged(pipeline("at STRING", event_time="_kafka_timestamp"), [event("x")])
    assert row["_event_time"] == row["_kafka_timestamp"]
    moment = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
    made = compile_pipeline(pipeline("at STRING", event_time="processing_time()"))
    result = kernel_run(tmp_path, made, batch([event("x")]), at=moment)
    assert result.accepted == {"2031-05-06T00:00:00Z": 1}
    assert result.max_event_time == {Lane("T", 0): moment}


def test_events_of_an_absurd_past_are_refused_when_asked() -> None:
    """A clock that begins in January would open every interval since; records arrive on March 1, 12:00."""
    values = [event("2024-02-28T12:00:00Z"), event("2024-02-28T11:59:59.999999Z")]
    good, bad = judged(pipeline("at TIMESTAMP", max_past="2 days"), values)
    assert isinstance(good, dict)
    assert bad[0] == "event time in the past"
    assert all(isinstance(row, dict) for row in judged(pipeline("at TIMESTAMP"), values))
    assert record_version(pipeline("at TIMESTAMP", max_past="2 days")) != record_version(
        pipeline("at TIMESTAMP")
    )
    assert record_version(pipeline("at TIMESTAMP", very_late="2 days")) == record_version(
        pipeline("at TIMESTAMP")
    )


def test_the_defaults_that_a_definition_names_bound_its_past() -> None:
    """366 days behind Kafka's timestamp: March 1, 2024, 12:00; a definition of before stays what it was."""
    old = pipeline("at TIMESTAMP")
    new = replace(old, defaults="2026-11", batch=replace(old.batch, start="2023-01-01"))
    good, bad = judged(new, [event("2023-03-01T12:00:00Z"), event("2023-03-01T11:59:59.999999Z")])
    assert isinstance(good, dict)
    assert bad[0] == "event time in the past"
    named = {
        "unsaid": old,
        "no bound": pipeline("at TIMESTAMP", max_past=""),
        "no bound, new": pipeline("at TIMESTAMP", max_past="", defaults="2026-11"),
        "said": pipeline("at TIMESTAMP", max_past="366 days"),
        "new": pipeline("at TIMESTAMP", defaults="2026-11"),
    }
    version = {name: record_version(each) for name, each in named.items()}
    assert version["unsaid"] == version["no bound"] == version["no bound, new"] == "29ef73f6c3bc"
    assert version["said"] == version["new"] != version["unsaid"]
    arrival = pipeline("at STRING", event_time="processing_time()")
    assert record_version(arrival) == record_version(replace(arrival, defaults="2026-11"))


def test_late_events_are_counted_by_class_and_never_dropped(tmp_path: Path) -> None:
    """They are in the answer at once; the ledger says how late they were."""
    # very late      | late                 | on time
    # ---- Feb 29, 10:00 ---- (one day) ---- Mar 1, 10:00 (watermark) ----
    times = [
        "2024-02-29T09:59:59Z",
        "2024-02-29T10:00:00Z",
        "2024-03-01T09:59:59Z",
        "2024-03-01T10:00:00Z",
        "2024-03-01T11:00:00Z",
    ]
    made = compile_pipeline(pipeline("at TIMESTAMP"))
    mark = datetime(2024, 3, 1, 10, tzinfo=UTC)
    result = kernel_run(tmp_path, made, batch([event(at) for at in times]), watermark=mark)
    assert result.accepted == {"2024-02-29T00:00:00Z": 2, "2024-03-01T00:00:00Z": 3}
    assert result.very_late == {"2024-02-29T00:00:00Z": 1}
    assert result.late == {"2024-02-29T00:00:00Z": 1, "2024-03-01T00:00:00Z": 1}
    assert (
        task.merge_task_reports((row["kind"], row["payload"]) for row in task.encode_result_rows(result))
        == result
    )
    first = kernel_run(tmp_path, made, batch([event(at) for at in times]))
    assert not first.late and not first.very_late


def test_events_before_1970_are_in_the_day_that_ends_after_them(tmp_path: Path) -> None:
    """Their microseconds are below zero, and a division that leaves out what is left over gives the day after."""
    made = compile_pipeline(replace(pipeline("at TIMESTAMP"), batch=Batch("1 day", "0002-01-01")))
    times = [
        "0002-01-01T00:00:00Z",
        "1969-12-30T23:59:59Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
    ]
    result = kernel_run(tmp_path, made, batch([event(at) for at in times]))
    days = ["0002-01-01T00:00:00Z", "1969-12-30T00:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"]
    assert result.accepted == dict.fromkeys(days, 1)
    [[found]] = result.states.values()
    assert sorted(map(format_utc_instant, found["pane"].to_pylist())) == days


def test_a_ledger_row_keeps_lateness_and_one_from_before_has_none() -> None:
    """What an earlier release wrote must be read for as long as the master lives."""
    row = Epoch(
        3, 0, datetime(2024, 3, 1, tzinfo=UTC), "v", accepted={"i": 5}, late={"i": 2}, very_late={"i": 1}
    )
    assert Epoch.from_json(row.to_json()) == row
    before = {
        name: value
        for name, value in json.loads(row.to_json()).items()
        if name not in ("late", "very_late", "reason", "bounds")
    }
    assert Epoch.from_json(json.dumps(before)) == replace(row, late={}, very_late={})


DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count

returns = Pipeline(
    name="returns",
    source=KafkaSource(
        topic="t", schema="id BIGINT, at TIMESTAMP, facts MAP<STRING, ARRAY<INT>>", event_time="at"
    ),
    side={"refunds": "id < 0"},
    views=[View("v", keys=[], window=Tumbling("1 day"), measures={"n": count()})],
    batch=Batch(interval="1 day", start="2024-01-01"),
)
"""


def test_a_side_is_read_by_its_name_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is routed away must be found again; the master's commit decides, as for every row."""
    (tmp_path / "returns.py").write_text(DEFINITION)
    made = load_catalog(tmp_path).pipeline("returns")
    master = Master.ensure(Layout(tmp_path / "warehouse", "returns"), made)
    values = [
        json.dumps({"id": id, "at": "2024-03-01", "facts": {"a": [id]}}).encode() for id in (1, -1, -2, 3)
    ]
    kernel_run(tmp_path / "warehouse" / "returns", made, batch(values))  # ends before the master's commit
    result = kernel_run(tmp_path / "warehouse" / "returns", made, batch(values))
    row = Epoch(7, 0, datetime(2024, 3, 1, tzinfo=UTC), made.record_version, accepted=result.accepted)
    master.commit(row, result.master)
    found = side("returns.refunds", warehouse=tmp_path / "warehouse", definitions=tmp_path)
    assert found["id"].to_pylist() == [-1, -2]
    assert [dict(each) for each in found["facts"].to_pylist()] == [{"a": [-1]}, {"a": [-2]}]
    with pytest.raises(NotFound, match="no side 'sales'"):
        side("returns.sales", warehouse=tmp_path / "warehouse", definitions=tmp_path)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    assert main(["side", "returns.refunds", "--format", "json", "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == -1


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "select's name": ({"select": {"My Shop": "id"}}, "select[My Shop]", "not a valid name"),
    "select a column": ({"select": {"amount": "id"}}, "select[amount]", "already"),
    "select unknown": ({"select": {"a": "shopp"}}, "select[a]", "no column"),
    "select from below": ({"select": {"a": "b", "b": "id"}}, "select[a]", "no column"),
    "select aggregates": ({"select": {"a": "sum(id)"}}, "select[a]", "not supported"),
    "select a part": ({"select": {"a": "cart.shopp"}}, "select[a]", "no part"),
    "where is no condition": ({"where": "id"}, "where", "not a condition"),
    "where aggregates": ({"where": "count(*) > 1"}, "where", ""),
    "where looks around": (
        {"where": "cart.shop RLIKE '^(?!test)'"},
        "where",
        "(? that only one engine knows",
    ),
    "where refers back": ({"where": r"cart.shop RLIKE r'(.)\1'"}, "where", r"has \1"),
    "select a match": ({"select": {"a": "regexp_extract(cart.shop, '[a-z]+')"}}, "select[a]", "group 1"),
    "select replaces nothing": (
        {"select": {"a": "regexp_replace(cart.shop, ' *', '')"}},
        "select[a]",
        "empty",
    ),
    "select a hash that Spark alone has": ({"select": {"a": "crc32(id)"}}, "select[a]", "not supported"),
    "select the hash of a struct": ({"select": {"a": "hash(id, cart)"}}, "select[a]", "no nested value"),
    "select mixes an interval": (
        {"select": {"a": "at + INTERVAL 1 MONTH 1 DAY"}},
        "select[a]",
        "mixes months",
    ),
    "select instants apart": ({"select": {"a": "at - at"}}, "select[a]", "not arithmetic of days"),
    "side's name": ({"side": {"a__b": "id > 1"}}, "side[a__b]", "not a valid name"),
    "side is no condition": ({"side": {"a": "id"}}, "side[a]", "not a condition"),
    "header of no name": ({"select": {"a": "header(id)"}}, "select[a]", "literal key"),
    "event time is a key": ({"event_time": "_key"}, "source.event_time", "no column '_key'"),
    "max past": ({"max_past": "long ago"}, "source.max_past", "not a duration"),
    "very late": ({"very_late": "later"}, "source.very_late", "not a duration"),
    "nested event id": ({"event_id": ["cart"]}, "source.event_id", "STRUCT"),
    "key in a view": (
        {
            "views": [
                View("v", keys=[], window=Tumbling("1 day"), where="_key = 'a'", measures={"n": count()})
            ]
        },
        "views[v].where",
        "no column '_key'",
    ),
    "nested key": (
        {"views": [View("v", keys=["cart"], window=Tumbling("1 day"), measures={"n": count()})]},
        "views[v].keys",
        "STRUCT",
    ),
    "explode no array": (
        {"views": [View("v", [], Tumbling("1 day"), {"n": count()}, explode={"x": "cart.shop"})]},
        "views[v].explode",
        "not an ARRAY",
    ),
    "explode two": (
        {
            "views": [
                View("v", [], Tumbling("1 day"), {"n": count()}, explode={"x": "cart.tags", "y": "cart.tags"})
            ]
        },
        "views[v].explode",
        "one array",
    ),
    "explode and count": (
        {"views": [View("v", [], CountWindow(3), {"n": count()}, explode={"x": "cart.tags"})]},
        "views[v].explode",
        "no order of their own",
    ),
    "horizon without an id": ({"dedup_within": "1 hour"}, "source.dedup_within", "no event id"),
    "horizon": ({"dedup_within": "an hour"}, "source.dedup_within", "not a duration"),
    "explode onto a column": (
        {"views": [View("v", [], Tumbling("1 day"), {"n": count()}, explode={"amount": "cart.tags"})]},
        "views[v].explode",
        "already",
    ),
    "nested measure": (
        {"views": [View("v", keys=[], window=Tumbling("1 day"), measures={"n": sum("cart.tags")})]},
        "views[v].measures[n]",
        "ARRAY",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_step_is_told_with_its_place(case: str) -> None:
    """The author must find the place without reading our code."""
    changes, field, fact = WRONG[case]
    compiled, problems = compile_with_problems(pipeline(SCHEMA, **changes))
    assert compiled is None
    found = next(problem for problem in problems if problem.field == field)
    assert fact in found.message
    assert found.hint
    assert found.line > 0


def test_each_step_is_part_of_the_record_version_and_their_absence_is_not() -> None:
    """Rows judged otherwise are other rows."""
    plain = pipeline(SCHEMA)
    steps: list[dict[str, Any]] = [
        {},
        {"select": {"a": "id"}},
        {"where": "id > 1"},
        {"side": {"a": "id > 1"}},
    ]
    versions = [record_version(pipeline(SCHEMA, **each)) for each in steps]
    assert len(set(versions)) == len(steps)
    assert versions[0] == record_version(plain)
    assert fingerprint_view(plain, plain.views[0]) != fingerprint_view(
        pipeline(SCHEMA, where="id > 1"), plain.views[0]
    )
