"""A wrong definition is told where it was written, all of it at once, and hides no other."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest

from seamline import (
    Batch,
    CountWindow,
    Cumulating,
    Expect,
    ExpectationSuite,
    ExpectRows,
    KafkaSource,
    Pipeline,
    Rule,
    Session,
    Sliding,
    Stream,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    formula,
    histogram,
    own,
    quantile,
    ratio,
    sum,
    top,
)
from seamline.model.compile import catalog
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import fingerprint_view, record_version
from seamline.model.errors import DefinitionError, NotFound

SOURCE = KafkaSource(
    topic="shop.orders",
    schema="id STRING NOT NULL, customer STRING, amount DOUBLE, placed_at TIMESTAMP",
    event_time="placed_at",
    event_id=["id"],
)
VIEW = View("by_customer", keys=["customer"], window=Tumbling("1 hour"), measures={"orders": count()})
ORDERS = Pipeline(name="orders", source=SOURCE, views=[VIEW], batch=Batch("1 day", "2024-01-01"))


def with_view(**changes: object) -> Pipeline:
    return dataclasses.replace(ORDERS, views=[dataclasses.replace(VIEW, **changes)])  # type: ignore[arg-type]


def with_source(**changes: object) -> Pipeline:
    return dataclasses.replace(ORDERS, source=dataclasses.replace(SOURCE, **changes))  # type: ignore[arg-type]


WRONG = {
    "name": (dataclasses.replace(ORDERS, name="My Orders"), "name", "is not a valid name"),
    "defaults": (
        dataclasses.replace(ORDERS, defaults="2026-01"),
        "defaults",
        "is not a month of defaults; available",
    ),
    "defaults in a list": (dataclasses.replace(ORDERS, defaults=["2026-11"]), "defaults", "not a month"),
    "names of views": (dataclasses.replace(ORDERS, views=["orders"]), "views", "'orders' is not a View"),
    "rules that are a text": (dataclasses.replace(ORDERS, rules="amount > 0"), "rules", "is not a list"),
    "an interval as the batch": (
        dataclasses.replace(ORDERS, batch="1 day"),
        "batch",
        "'1 day' is not a Batch",
    ),
    "a stream's setting": (dataclasses.replace(ORDERS, stream=5), "stream", "5 is not a Stream"),
    "conditions in a list": (dataclasses.replace(ORDERS, side=["amount > 0"]), "side", "is not a mapping"),
    "no views": (dataclasses.replace(ORDERS, views=[]), "views", "needs a view"),
    "two views of one name": (dataclasses.replace(ORDERS, views=[VIEW, VIEW]), "views", "declared twice"),
    "schema type": (with_source(schema="id TEXTS, placed_at TIMESTAMP"), "source.schema", "TEXTS"),
    "no topic": (with_source(topic=[]), "source.topic", "names no topic"),
    "topic twice": (with_source(topic=["orders", "orders"]), "source.topic", "one of them twice"),
    "event time column": (with_source(event_time="at"), "source.event_time", "no column 'at'"),
    "event time type": (with_source(event_time="amount"), "source.event_time", "amount is DOUBLE"),
    "event id column": (with_source(event_id=["uid"]), "source.event_id", "no column 'uid'"),
    "format": (with_source(format="xml"), "source.format", "'xml' is not supported"),
    "max future": (with_source(max_future="soon"), "source.max_future", "not a duration"),
    "a number for a duration": (with_source(max_past=30), "source.max_past", "30 is not a duration"),
    "no for no bound": (with_source(max_past=False), "source.max_past", "False is not a duration"),
    "no for no duplicates": (with_source(dedup_within=False), "source.dedup_within", "not a duration"),
    "no for never fresh": (
        dataclasses.replace(ORDERS, batch=Batch("1 day", "2024-01-01", fresh_within=False)),
        "batch.fresh_within",
        "not a duration",
    ),
    "record's bytes": (
        with_source(max_record_bytes=0),
        "source.max_record_bytes",
        "0 is not a valid bound",
    ),
    "record's parts": (with_source(max_record_parts=True), "source.max_record_parts", "not a whole number"),
    "strays": (with_source(max_stray_intervals="few"), "source.max_stray_intervals", "not a whole number"),
    "watermark": (with_source(watermark=Watermark("a bit")), "source.watermark", "not a duration"),
    "worker's memory": (
        dataclasses.replace(ORDERS, stream=Stream(worker_memory="plenty")),
        "stream.worker_memory",
        "'plenty' is not a memory size",
    ),
    "driver's memory": (
        dataclasses.replace(ORDERS, stream=Stream(memory="512m")),
        "stream.memory",
        "'512m' is less than Spark's driver needs",
    ),
    "trigger": (
        dataclasses.replace(ORDERS, stream=Stream(trigger="fast")),
        "stream.trigger",
        "not a duration",
    ),
    "interval": (
        dataclasses.replace(ORDERS, batch=Batch("7 hours", "2024-01-01")),
        "batch.interval",
        "divide",
    ),
    "start": (dataclasses.replace(ORDERS, batch=Batch("1 day", "2024-01-01T05:00")), "batch.start", "inside"),
    "first year": (
        dataclasses.replace(ORDERS, batch=Batch("1 day", "0001-01-01")),
        "batch.start",
        "too close to an end of the calendar",
    ),
    "short interval": (
        dataclasses.replace(ORDERS, batch=Batch("500 milliseconds", "2024-01-01")),
        "batch.interval",
        "shorter than a second",
    ),
    "durability": (
        dataclasses.replace(ORDERS, stream=Stream(durability="always")),
        "stream.durability",
        "not one of replay, fsync",
    ),
    "when": (
        dataclasses.replace(ORDERS, batch=Batch("1 day", "2024-01-01", when="open")),
        "batch.when",
        "not one of scheduled, closed",
    ),
    "provisional": (
        dataclasses.replace(ORDERS, batch=Batch("1 day", "2024-01-01", provisional="yes")),
        "batch.provisional",
        "neither True nor False",
    ),
    "start text": (dataclasses.replace(ORDERS, batch=Batch("1 day", "January")), "batch", "not a date"),
    "rule column": (
        dataclasses.replace(ORDERS, rules=[Rule("paid", "paid = true")]),
        "rules[paid].condition",
        "paid",
    ),
    "rule is no condition": (
        dataclasses.replace(ORDERS, rules=[Rule("paid", "amount")]),
        "rules[paid].condition",
        "not a condition",
    ),
    "rule aggregates": (
        dataclasses.replace(ORDERS, rules=[Rule("paid", "sum(amount) > 1")]),
        "rules[paid].condition",
        "",
    ),
    "key column": (with_view(keys=["client"]), "views[by_customer].keys", "no column 'client'"),
    "key that is a float": (with_view(keys=["amount"]), "views[by_customer].keys", "amount is DOUBLE"),
    "window": (with_view(window=Tumbling("an hour")), "views[by_customer].window", "not a duration"),
    "slide larger than size": (
        with_view(window=Sliding("1 hour", "2 hours")),
        "views[by_customer].window",
        "longer than the window",
    ),
    "slide that does not divide": (
        with_view(window=Sliding("1 hour", "25 minutes")),
        "views[by_customer].window",
        "does not divide",
    ),
    "step that does not divide": (
        with_view(window=Cumulating("1 day", "7 hours")),
        "views[by_customer].window",
        "does not divide",
    ),
    "time zone": (
        with_view(window=Tumbling("1 day", zone="New York")),
        "views[by_customer].window.zone",
        "not a time zone",
    ),
    "window against the clock": (
        with_view(window=Tumbling("40 minutes", zone="America/New_York")),
        "views[by_customer].window",
        "do not fit the clock",
    ),
    "offset": (
        with_view(window=Tumbling("1 day", offset="25 hours")),
        "views[by_customer].window",
        "not shorter",
    ),
    "panes": (
        with_view(window=Tumbling("1 week", offset="1 millisecond")),
        "views[by_customer].window",
        "panes of",
    ),
    "gap": (with_view(window=Session("soon")), "views[by_customer].window", "not a duration"),
    "count window": (with_view(window=CountWindow(0)), "views[by_customer].window", "cannot make a window"),
    "count window in sets": (
        with_view(window=CountWindow(3), grouping_sets=[["customer"]]),
        "views[by_customer].grouping_sets",
        "count other events",
    ),
    "count window's column": (
        with_view(window=CountWindow(3), measures={"window_number": count()}),
        "views[by_customer].keys",
        "numbers count windows",
    ),
    "no window": (with_view(window="1 hour"), "views[by_customer].window", "is not a window"),
    "grouping set of no key": (
        with_view(grouping_sets=[["customer"], ["id"]]),
        "views[by_customer].grouping_sets",
        "'id' is not a key",
    ),
    "grouping set that is text": (
        with_view(grouping_sets=["customer"]),
        "views[by_customer].grouping_sets",
        "'customer' is not a list of columns",
    ),
    "grouping set twice": (
        with_view(grouping_sets=[["customer"], ["customer"]]),
        "views[by_customer].grouping_sets",
        "is repeated",
    ),
    "key in no set": (
        with_view(grouping_sets=[[]]),
        "views[by_customer].grouping_sets",
        "is in no set",
    ),
    "name of the sets' column": (
        with_view(grouping_sets=[["customer"], []], measures={"grouping": count()}),
        "views[by_customer].grouping_sets",
        "names a row's set",
    ),
    "phase taken": (
        with_view(measures={"phase": count()}),
        "views[by_customer].measures[phase]",
        "taken",
    ),
    "no measures": (with_view(measures={}), "views[by_customer].measures", "needs a measure"),
    "measure on text": (
        with_view(measures={"mean": avg("customer")}),
        "views[by_customer].measures[mean]",
        "the expression is STRING",
    ),
    "measure column": (with_view(measures={"m": avg("total")}), "views[by_customer].measures[m]", "total"),
    "measure name taken": (
        with_view(measures={"rows": count()}),
        "views[by_customer].measures[rows]",
        "taken",
    ),
    "quantile in per cent": (
        with_view(measures={"p": quantile("amount", 95)}),
        "views[by_customer].measures[p]",
        "not between 0 and 1",
    ),
    "a measure's where": (
        with_view(measures={"n": count(where="amount")}),
        "views[by_customer].measures[n]",
        "not a condition",
    ),
    "a measure of nothing": (
        with_view(measures={"m": avg("", where="amount > 1")}),
        "views[by_customer].measures[m]",
        "needs an expression",
    ),
    "ratio of nothing": (
        with_view(measures={"n": count(), "share": ratio("m", "n")}),
        "views[by_customer].measures[share]",
        "'m' is not a measure",
    ),
    "formula without parts": (
        with_view(measures={"m": formula("1")}),
        "views[by_customer].measures[m]",
        "has no parts",
    ),
    "formula of a ratio": (
        with_view(measures={"m": formula("a", a=ratio("b", "c"))}),
        "views[by_customer].measures[m]",
        "not a measure with a state",
    ),
    "formula part": (
        with_view(measures={"m": formula("total / 2", total=sum("customer"))}),
        "views[by_customer].measures[m]",
        "sum(customer) takes",
    ),
    "formula part name": (
        with_view(measures={"m": formula("Total", Total=sum("amount"))}),
        "views[by_customer].measures[m]",
        "'Total' is not a valid name",
    ),
    "formula column": (
        with_view(measures={"m": formula("total / amount", total=sum("amount"))}),
        "views[by_customer].measures[m]",
        "amount",
    ),
    "formula that can fail": (
        with_view(measures={"m": formula("total / n", total=sum("amount"), n=count())}),
        "views[by_customer].measures[m]",
        "can fail",
    ),
    "own of nothing": (
        with_view(measures={"m": own("amount", "nowhere:Mine")}),
        "views[by_customer].measures[m]",
        "cannot be imported",
    ),
    "own by a function": (
        with_view(measures={"m": own("amount", "tests.unit.steps:words")}),
        "views[by_customer].measures[m]",
        "not a class",
    ),
    "own without a name": (
        with_view(measures={"m": own("amount", "Mine")}),
        "views[by_customer].measures[m]",
        "does not name a class",
    ),
    "own without an expression": (
        with_view(measures={"m": own("", "tests.unit.own_measures:Span")}),
        "views[by_customer].measures[m]",
        "own needs an expression",
    ),
    "ratio of lists": (
        with_view(measures={"n": count(), "h": histogram("amount", [1]), "share": ratio("h", "n")}),
        "views[by_customer].measures[share]",
        "'h' is not a measure",
    ),
    "edges that fall": (
        with_view(measures={"h": histogram("amount", [2, 1])}),
        "views[by_customer].measures[h]",
        "increasing",
    ),
    "bounds for a list": (
        with_view(measures={"t": top("customer", 3)}, expect=[Expect("t", at_least=1)]),
        "views[by_customer].expect",
        "has no bounds",
    ),
    "where": (with_view(where="amount >"), "views[by_customer].where", ""),
    "expect": (
        with_view(expect=[Expect("total", at_least=1)]),
        "views[by_customer].expect",
        "presents no column",
    ),
    "bounds for a text": (
        with_view(expect=Expect("customer", at_most=1)),
        "views[by_customer].expect",
        "has no bounds",
    ),
    "a set of another type": (
        with_view(expect=[Expect("orders", in_set=["1"])]),
        "views[by_customer].expect",
        "not a list of its values",
    ),
    "a set that is one text": (
        with_view(expect=[Expect("customer", in_set="ada")]),
        "views[by_customer].expect[0].in_set",
        "not a list of values",
    ),
    "a bound that is text": (
        with_view(expect=[Expect("orders", at_least="5")]),  # type: ignore[arg-type]
        "views[by_customer].expect[0].at_least",
        "'5' is not a number",
    ),
    "a bound that is no number": (
        with_view(expect=[Expect("orders", at_most=float("nan"))]),
        "views[by_customer].expect",
        "no bound",
    ),
    "a set that cannot be stored": (
        with_view(expect=[Expect("customer", in_set={"a"})]),  # type: ignore[arg-type]
        "views[by_customer].expect[0].in_set",
        "not a list of values",
    ),
    "rows by text": (
        with_view(expect=[ExpectRows(at_least="1")]),  # type: ignore[arg-type]
        "views[by_customer].expect[0].at_least",
        "'1' is not a number",
    ),
    "a regex for a number": (
        with_view(expect=[Expect("orders", regex="1")]),
        "views[by_customer].expect",
        "no regex matches",
    ),
    "a regex that is none": (
        with_view(expect=[Expect("customer", regex="(")]),
        "views[by_customer].expect",
        "is wrong",
    ),
    "unique lists": (
        with_view(measures={"t": top("customer", 3)}, expect=[Expect("t", unique=True)]),
        "views[by_customer].expect",
        "are not compared",
    ),
    "rows without a bound": (
        with_view(expect=[ExpectRows()]),
        "views[by_customer].expect",
        "Nothing is expected",
    ),
    "fewer rows than none": (
        with_view(expect=[ExpectRows(max_change=-0.1)]),
        "views[by_customer].expect",
        "below 0",
    ),
    "an empty suite": (
        with_view(expect=ExpectationSuite([])),
        "views[by_customer].expect",
        "no expectations",
    ),
    "a suite of objects": (
        with_view(expect=ExpectationSuite([Expect("customer")])),
        "views[by_customer].expect.expectations[0]",
        "is not a mapping",
    ),
    "a suite of other words": (
        with_view(expect=ExpectationSuite([{"expectation_type": "expect_column_to_exist"}])),
        "views[by_customer].expect",
        "not a configuration",
    ),
    "a suite of another severity": (
        with_view(expect=ExpectationSuite([{"type": "expect_column_to_exist", "severity": "mild"}])),
        "views[by_customer].expect",
        "not a severity",
    ),
    "a suite that is not plain": (
        with_view(expect=ExpectationSuite([{"type": "expect_it", "kwargs": {"column": print}}])),
        "views[by_customer].expect",
        "not plain",
    ),
    "an expectation that is none": (
        with_view(expect=["orders > 0"]),
        "views[by_customer].expect",
        "is not an expectation",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_definition_names_file_line_field_and_hint(case: str) -> None:
    """The author must find the place without reading our code."""
    pipeline, field, fact = WRONG[case]
    compiled, problems = compile_with_problems(pipeline)
    assert compiled is None
    found = next(problem for problem in problems if problem.field == field)
    assert fact in found.message
    assert found.hint
    assert Path(found.file).name == Path(__file__).name
    assert found.line > 0
    assert f"{Path(__file__).name}:{found.line}: {field}: " in str(found)


def test_every_problem_is_found_at_once() -> None:
    """Mending one error to meet the next wastes an afternoon."""
    pipeline = dataclasses.replace(with_view(keys=["client"], measures={"mean": avg("customer")}), name="No")
    assert {problem.field for problem in compile_with_problems(pipeline)[1]} == {
        "name",
        "views[by_customer].keys",
        "views[by_customer].measures[mean]",
    }


@pytest.mark.parametrize(
    "setting",
    [
        'defaults=["2026-11"]',
        "side=30",
        "rules=[1]",
        "select=False",
        "where=1.5",
        "lookups=7",
        "lookups=[None]",
    ],
)
def test_a_setting_of_another_type_hides_no_other(tmp_path: Path, setting: str) -> None:
    """Whatever Python raises of it is a problem of that definition, at its line."""
    wrong = f"""from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count
source = KafkaSource("orders", "placed_at TIMESTAMP", "placed_at")
views = [View("all", keys=[], window=Tumbling("1 hour"), measures={{"n": count()}})]
orders = Pipeline("orders", source, views, Batch("1 day", "2024-01-01"), {setting})
"""
    (tmp_path / "orders.py").write_text(wrong)
    good = Path(__file__).parents[3] / "include" / "pipelines" / "flights.py"
    (tmp_path / "flights.py").write_text(good.read_text())
    catalog = load_catalog(tmp_path)
    assert list(catalog.pipelines) == ["flights"]
    with pytest.raises(DefinitionError) as told:
        catalog.pipeline("orders")
    assert (told.value.file, told.value.line) == (str(tmp_path / "orders.py"), 4)


def test_a_broken_file_hides_no_other(tmp_path: Path) -> None:
    """A colleague's typing error must not stop your pipeline."""
    good = Path(__file__).parents[3] / "include" / "pipelines" / "flights.py"
    (tmp_path / "flights.py").write_text(good.read_text())
    (tmp_path / "broken.py").write_text("x = 1\ny = (\n")
    (tmp_path / "crash.py").write_text("import seamline\nseamline.View('x', colour='red')\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "_part.py").write_text("raise SystemExit\n")
    catalog = load_catalog(tmp_path)
    assert set(catalog.pipelines) == {"flights"}
    assert {(Path(each.file).name, each.line) for each in catalog.problems} == {
        ("broken.py", 2),
        ("crash.py", 2),
        ("empty.py", 0),
    }
    with pytest.raises(DefinitionError, match="never closed"):
        catalog.pipeline("broken")
    with pytest.raises(NotFound, match="no pipeline 'orders'"):
        catalog.pipeline("orders")
    with pytest.raises(NotFound, match="flights.nothing"):
        catalog.view("flights.nothing")


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        (
            "View('x', colour='red')",
            "TypeError: View.__init__() got an unexpected keyword argument 'colour'.",
            "View takes name, keys, window, measures, where, explode, expect, grouping_sets, of.",
        ),
        (
            "count(were='amount > 1')",
            "TypeError: count() got an unexpected keyword argument 'were'.",
            "count takes of, where.",
        ),
        (
            "protobuf('nowhere.desc', 'Order')",
            "The descriptor 'nowhere.desc' cannot be read: No such file or directory.",
            'name it relative to the definition: Path(__file__).with_name("orders.desc").',
        ),
        ("count().nothing", "AttributeError: 'Count' object has no attribute 'nothing'.", "importable"),
    ],
)
def test_what_a_file_raises_is_told_with_its_line(
    tmp_path: Path, written: str, message: str, hint: str
) -> None:
    """Who has mistyped an argument wants to know which ones there are."""
    (tmp_path / "wrong.py").write_text(f"from seamline import *\n{written}\n")
    [found] = load_catalog(tmp_path).problems
    assert (Path(found.file).name, found.line) == ("wrong.py", 2)
    assert found.message == message
    assert hint in found.hint


def test_an_edit_is_seen_whatever_the_clock_says_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python keeps bytecode by size and second: one letter changed at once, or a file put there with its old time."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "flights.py"
    text = (Path(__file__).parents[3] / "include" / "pipelines" / "flights.py").read_text()
    for name in ("flights", "flightz"):
        file.write_text(text.replace('name="flights"', f'name="{name}"'))
        os.utime(file, (1e9, 1e9))
        assert list(load_catalog(tmp_path).pipelines) == [name]


def test_files_that_import_each_other_are_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own words do not say what to do."""
    (tmp_path / "east.py").write_text("from west import KEYS\nVIEWS = []\n")
    (tmp_path / "west.py").write_text("from east import VIEWS\nKEYS = []\n")
    monkeypatch.syspath_prepend(tmp_path)
    east, west = load_catalog(tmp_path).problems
    assert (Path(east.file).name, east.line) == ("east.py", 1)
    assert (Path(west.file).name, west.line) == ("west.py", 1)
    assert "circular import" in east.message
    assert "import each other" in east.hint


def test_one_name_in_two_files_is_refused(tmp_path: Path) -> None:
    """Two definitions would write one set of tables."""
    text = (Path(__file__).parents[3] / "include" / "pipelines" / "flights.py").read_text()
    (tmp_path / "one.py").write_text(text)
    (tmp_path / "two.py").write_text(text)
    catalog = load_catalog(tmp_path)
    assert len(catalog.pipelines) == 1
    assert "also declared" in catalog.problems[0].message


def test_fingerprints_follow_the_numbers_and_nothing_else() -> None:
    """A new owner must not rebuild a year; a new rule must."""
    same = dataclasses.replace(ORDERS, owner="somebody", retries=9, views=[VIEW])
    ruled = dataclasses.replace(ORDERS, rules=[Rule("paid", "amount > 0")])
    assert fingerprint_view(same, VIEW) == fingerprint_view(ORDERS, VIEW)
    assert record_version(same) == record_version(ORDERS)
    assert record_version(ruled) != record_version(ORDERS)
    assert fingerprint_view(ruled, VIEW) != fingerprint_view(ORDERS, VIEW)
    spent = dataclasses.replace(VIEW, measures={"m": avg("amount")})
    some = dataclasses.replace(VIEW, measures={"m": avg("amount", where="amount > 1")})
    assert fingerprint_view(ORDERS, some) != fingerprint_view(ORDERS, spent)
    wider = dataclasses.replace(VIEW, window=Tumbling("2 hours"))
    assert fingerprint_view(ORDERS, wider) != fingerprint_view(ORDERS, VIEW)


def test_versions_born_before_a_measure_had_a_condition_keep_their_names() -> None:
    """A fingerprint that changed by itself would hide a year of tables."""
    view = dataclasses.replace(
        VIEW, measures={"n": count(), "m": avg("amount"), "p": quantile("amount", 0.5)}
    )
    assert fingerprint_view(ORDERS, view) == "9848c9589ff3"


def test_measures_of_one_state_share_it() -> None:
    """Two quantiles of one expression are one sketch; another condition is another state."""
    measures = {
        "p50": quantile("amount", 0.5),
        "p99": quantile("amount", 0.99),
        "large": quantile("amount", 0.5, where="amount > 10"),
    }
    (view,) = compile_pipeline(with_view(measures=measures)).views
    assert [state.name for state in view.states] == ["p50", "large"]
    assert [measure.parts[0].name for measure in view.measures] == [
        "p50__values",
        "p50__values",
        "large__values",
    ]


def test_required_columns() -> None:
    """The event time and the id are needed without saying so."""
    assert compile_pipeline(ORDERS).required == {"id", "placed_at"}


def test_a_problem_that_passes_by_itself_is_not_believed_for_ever(tmp_path, monkeypatch):
    """A server that read a definition while a disk was away would refuse the pipeline until it is restarted."""
    (tmp_path / "shop.py").write_text("import seamline_test_away\n")
    assert "seamline_test_away" in str(catalog.load_cached_catalog(tmp_path).problems[0])
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/seamline_test_away.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "beside"))
    assert "seamline_test_away" in str(catalog.load_cached_catalog(tmp_path).problems[0])
    monkeypatch.setattr(catalog, "BELIEVED_FOR", 0.0)
    [problem] = catalog.load_cached_catalog(tmp_path).problems
    assert problem.message == "No Pipeline is declared here."
