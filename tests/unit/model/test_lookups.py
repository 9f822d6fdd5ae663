"""Look-ups: what a record finds, which version it found, and what is wrong with a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.unit.records import pipeline

from seamline import Lookup, Rule, Tumbling, View, count, formula, sum
from seamline.lake.log.master import Master
from seamline.lake.read.decorations import load_current_lookup
from seamline.lake.storage.exact_casts import cast_exactly
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups, load_lookup
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import record_version
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.errors import LookupBroken
from seamline.model.measures import Measure
from seamline.model.protocol.epoch import Epoch
from seamline.serve.lookup_versions import lookups_of
from seamline.testing import Scenario

SCHEMA = "carrier STRING, seats INT, at TIMESTAMP"
AIRLINES = Lookup("airlines", "airlines.csv", on={"code": "carrier"}, columns=["name", "planes INT"])
BY_NAME = View("by_name", keys=["airlines_name"], window=Tumbling("1 day"), measures={"n": count()})
TABLE = "code,name,planes,note\nUA,United,10,x\nAA,American,,y\nZZ,,7,z\n,Nobody,1,\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of definitions, with a table in it."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "airlines.csv").write_text(TABLE)
    return tmp_path


def flights(*lookups: Lookup, **changes: Any) -> Any:
    return pipeline(SCHEMA, **{"views": [BY_NAME], "lookups": lookups or [AIRLINES], **changes})


def flown(carrier: Any, seats: int = 1) -> dict[str, Any]:
    return {"carrier": carrier, "seats": seats, "at": "2024-03-01T10:00:00Z"}


def names(scenario: Scenario) -> list[tuple[Any, int]]:
    return [(row["airlines_name"], row["n"]) for row in scenario.answer()]


def test_a_row_has_what_it_found() -> None:
    """NULL where there is no match, no key, or nothing in the cell."""
    scenario = Scenario(flights(), now="2024-03-02")
    scenario.send(flown("UA"), flown("AA"), flown("UA"), flown("ZZ"), flown("XX"), flown(None))
    assert scenario.epoch().rows == 6
    assert names(scenario) == [("American", 1), (None, 3), ("United", 2)]


def test_every_step_after_it_may_use_it() -> None:
    """Derived columns, rules, sides, conditions, measures, and another look-up."""
    fleets = Lookup(
        "fleets",
        "tests.unit.model.test_lookups:fleet",
        on={"size": "airlines_planes + 0"},
        columns=["kind"],
        prefix="f_",
    )
    view = View(
        "all_rows", keys=["kind"], window=Tumbling("1 day"), measures={"planes": sum("airlines_planes")}
    )
    made = flights(
        AIRLINES,
        fleets,
        select={"kind": "concat(f_kind, '!')", "known": "airlines_name IS NOT NULL"},
        rules=[Rule("a number", "airlines_planes IS NOT NULL")],
        side={"nameless": "NOT known"},
        views=[view],
    )
    scenario = Scenario(made, now="2024-03-02")
    scenario.send(flown("AA"), flown("UA"), flown("ZZ"), flown("XX"), flown("UA"))
    scenario.epoch()
    assert [(row["kind"], row["planes"]) for row in scenario.answer()] == [("big!", 20)]
    assert [(each.offset, each.reason) for each in scenario.quarantine()] == [
        (0, "rule a number"),
        (3, "rule a number"),
    ]


@pytest.mark.parametrize(
    "measure",
    [
        count(where="airlines_planes > 5"),
        formula("f", f=count(where="airlines_planes > 5")),
        sum("airlines_planes div 7"),
    ],
)
def test_naming_it_anywhere_pins_it(measure: Measure) -> None:
    """In a measure's expression or condition, or in a part of a formula."""
    view = View("v", keys=["carrier"], window=Tumbling("1 day"), measures={"n": measure})
    scenario = Scenario(flights(views=[view]), now="2024-03-02")
    scenario.send(flown("UA"), flown("ZZ"), flown("AA"), flown("UA"))
    assert scenario.epoch().lookups
    assert [(row["carrier"], row["n"] or 0) for row in scenario.answer()] == [("AA", 0), ("UA", 2), ("ZZ", 1)]


def fleet() -> pd.DataFrame:
    """A package's own frame; pandas has no integers with gaps."""
    return pd.DataFrame({"size": [10.0, 7.0], "kind": ["big", "small"]})


def test_keys_are_expressions_of_the_record(folder: Path) -> None:
    """Several columns, derived on the way; one that has no value refuses its record."""
    table = pa.table({"a": ["U", "A"], "n": pa.array([2, 1], pa.int64()), "name": ["United", "American"]})
    found = Lookup(
        "airlines", "m", on={"a": "substring(carrier, 1, 1)", "n": "10 div seats"}, columns=["name"]
    )
    write_deltalake(str(folder / "m"), table)
    scenario = Scenario(flights(found), now="2024-03-02")
    scenario.send(flown("UA", 5), flown("AA", 5), flown("AA", 10), flown("UA", 0))
    scenario.epoch()
    assert names(scenario) == [("American", 1), (None, 1), ("United", 1)]
    assert [each.reason for each in scenario.quarantine()] == ["error in lookup airlines"]


def test_rows_keep_their_order_and_their_place(folder: Path) -> None:
    """A join may turn rows around; each must still meet its own bytes."""
    pq.write_table(
        pa.table(
            {"code": [f"c{at}" for at in range(5000)], "name": [f"name of c{at}" for at in range(5000)]}
        ),
        folder / "many.parquet",
    )
    many = replace(AIRLINES, table="many.parquet", columns=["name"])
    made = flights(many, rules=[Rule("own", "airlines_name = concat('name of ', carrier)")])
    scenario = Scenario(made, now="2024-03-02")
    scenario.send(*(flown(f"c{at * 7919 % 3000}") for at in range(3000)))
    assert dict(scenario.epoch().refused) == {}


def test_an_epoch_names_the_version_and_a_new_table_changes_only_what_follows(folder: Path) -> None:
    """What was read keeps what it found; the same content is the same version."""
    scenario = Scenario(flights(), now="2024-03-02")
    scenario.send(flown("UA"))
    first = scenario.epoch().lookups["airlines"]
    header, *lines = TABLE.splitlines()
    (folder / "airlines.csv").write_text("\n".join([header, *reversed(lines)]))
    scenario.send(flown("UA"))
    assert scenario.epoch().lookups["airlines"] == first
    (folder / "airlines.csv").write_text(TABLE.replace("United", "Union"))
    scenario.send(flown("UA"))
    assert scenario.epoch().lookups["airlines"] != first
    assert names(scenario) == [("Union", 1), ("United", 2)]
    assert scenario.epoch().lookups == {}


@pytest.mark.parametrize(
    "text", [TABLE + "UA,Again,1,\n", "code,planes\nUA,1\n", TABLE.replace("10", "ten"), None]
)
def test_a_broken_table_leaves_the_version_before_it(
    folder: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody saves a file half-way: the stream goes on, and says it once."""
    scenario = Scenario(flights(), now="2024-03-02")
    (folder / "airlines.csv").unlink()
    if text is not None:
        (folder / "airlines.csv").write_text(text)
    for _ in range(2):
        scenario.send(flown("UA"))
        scenario.epoch()
    assert names(scenario) == [("United", 2)]
    assert caplog.text.count("stays") == 1
    scenario.restart()
    scenario.send(flown("UA"))
    scenario.epoch()
    assert names(scenario) == [("United", 3)]
    assert caplog.text.count("stays") == 2
    (folder / "airlines.csv").write_text(TABLE.replace("United", "Union"))
    scenario.send(flown("UA"))
    scenario.epoch()
    assert names(scenario) == [("Union", 1), ("United", 3)]


def test_a_version_of_another_definition_is_not_taken_for_this_one(folder: Path) -> None:
    """Its columns may have the same names and mean something else."""
    scenario = Scenario(flights(), now="2024-03-02")
    scenario.send(flown("UA"))
    last = scenario.epoch()
    assert in_force([last], scenario.pipeline.record_version) == last.lookups
    other = compile_pipeline(flights(replace(AIRLINES, table="other.csv")))
    assert in_force([last], other.record_version) == {}
    assert in_force([replace(last, lookups={"airlines": "older"}), last], last.record_version) == last.lookups


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"table": "nowhere.csv"}, "cannot be read: FileNotFoundError"),
        ({"table": "tests.unit.model.test_lookups:absent"}, "cannot be read: AttributeError"),
        ({"columns": ["country"]}, "has no column 'country'"),
        ({"on": {"iata": "carrier"}}, "has no column 'iata'"),
        ({"columns": ["name", "note DATE"]}, "column 'note' of 'airlines.csv' is string, not DATE"),
        (
            {"on": {"same": "carrier"}, "table": "tests.unit.model.test_lookups:twins"},
            "more than one row with same = 'a'",
        ),
    ],
)
def test_a_stream_does_not_start_without_its_table(change: dict[str, Any], fact: str, folder: Path) -> None:
    """A row without what it should have found is wrong for ever."""
    wanted = replace(AIRLINES, **{"columns": ["name"], **change})
    view = replace(BY_NAME, keys=[f"airlines_{wanted.columns[0]}"])
    made = compile_pipeline(flights(wanted, views=[view]))
    with pytest.raises(LookupBroken, match=fact) as problem:
        Lookups(made.record.lookups, Layout(folder, "p"), {})
    assert problem.value.hint


RATES = Lookup("rates", "rates.csv", on={"code": "carrier"}, columns=["rate DECIMAL(38,18)"])


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1234567890.123456789012345678", "1234567890.123456789012345678"),
        ("99999999999999999999.999999999999999999", "99999999999999999999.999999999999999999"),
        ("1e-18", "0.000000000000000001"),
        ("5", "5"),
    ],
)
def test_a_rate_keeps_its_digits(text: str, rate: str, folder: Path) -> None:
    """A rate that went through a double would make each total of it wrong by a little."""
    (folder / "rates.csv").write_text(f"code,rate\nUA,{text}\n")
    view = View("v", keys=["rates_rate"], window=Tumbling("1 day"), measures={"total": sum("rates_rate")})
    scenario = Scenario(flights(RATES, views=[view]), now="2024-03-02")
    scenario.send(flown("UA"))
    scenario.epoch()
    assert [(row["rates_rate"], row["total"]) for row in scenario.answer()] == [
        (Decimal(rate), Decimal(rate))
    ]


@pytest.mark.parametrize("text", ["0.0000000000000000001", "1e20", "x", " 1"])
def test_a_rate_that_does_not_fit_is_told(text: str, folder: Path) -> None:
    """It is never rounded."""
    (folder / "rates.csv").write_text(f"code,rate\nUA,{text}\n")
    view = View("v", keys=["rates_rate"], window=Tumbling("1 day"), measures={"n": count()})
    made = compile_pipeline(flights(RATES, views=[view]))
    with pytest.raises(LookupBroken, match=r"column 'rate' of 'rates.csv' is string, not DECIMAL\(38,18\)"):
        Lookups(made.record.lookups, Layout(folder, "p"), {})


GIVEN: pa.Table = pa.table({"code": ["UA"], "rate": [0.5]})
"""What ``given`` gives."""


def given() -> pa.Table:
    return GIVEN


def a_rate(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, rate: pa.Array, type: str) -> Any:
    """Declare a look-up whose source keeps a rate in a type of its own."""
    table = pa.table({"code": ["UA"] * len(rate), "nr": range(len(rate)), "rate": rate})
    match source:
        case "parquet":
            pq.write_table(table, folder / "rates.parquet")
        case "delta":
            write_deltalake(str(folder / "rates"), table)
        case "arrow":
            monkeypatch.setattr(f"{__name__}.GIVEN", table)
        case "pandas":
            monkeypatch.setattr(f"{__name__}.GIVEN", table.to_pandas())
    places = {"parquet": "rates.parquet", "delta": "rates"}
    wanted = Lookup(
        "rates",
        places.get(source, "tests.unit.model.test_lookups:given"),
        on={"code": "carrier", "nr": "seats"},
        columns=[f"rate {type}"],
    )
    view = View("v", keys=["carrier"], window=Tumbling("1 day"), measures={"total": sum("rates_rate")})
    return flights(wanted, views=[view])


SOURCES = ["arrow", "pandas", "parquet", "delta"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_rate_that_a_double_keeps_is_the_one_that_was_written(
    folder: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1 is no double; Arrow's own cast makes 0.100000000000000006 of the nearest one."""
    rates = ["0.1", "-0.0425", "123456789012.345", "100000000000000000", "0.000000000000000001"]
    made = a_rate(folder, monkeypatch, source, pa.array(map(float, rates)), "DECIMAL(38,18)")
    scenario = Scenario(made, now="2024-03-02")
    for at, rate in enumerate(rates):
        scenario.send({**flown("UA", at), "at": f"2024-02-0{at + 1}T10:00:00Z"})
        scenario.epoch()
        assert scenario.answer()[-1]["total"] == Decimal(rate)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("rate", "type", "fact"),
    [
        (0.125, "DECIMAL(10,2)", "0.125 does not fit"),
        (1234567.5, "DECIMAL(5,2)", "1234567.5 does not fit"),
        (0.1 + 0.2, "DECIMAL(38,18)", "0.30000000000000004 has more than the 15 digits that a double keeps"),
        (1234567890123456.78, "DECIMAL(18,2)", "1.2345678901234568e+15 has more than the 15 digits"),
    ],
)
def test_a_rate_that_a_double_has_rounded_is_told(
    folder: Path, source: str, rate: float, type: str, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which digits were meant nobody knows; it is never rounded, and the way out is named."""
    made = compile_pipeline(a_rate(folder, monkeypatch, source, pa.array([None, 0.5, rate]), type))
    with pytest.raises(LookupBroken) as problem:
        Lookups(made.record.lookups, Layout(folder, "p"), {})
    place = made.record.lookups[0].table
    assert f"column 'rate' of '{place}' is double, not {type}: {fact}" in problem.value.message
    assert problem.value.hint.startswith("make it DECIMAL or text where the table is made")


@pytest.mark.parametrize(
    ("rate", "type"),
    [
        (pa.array([0.1], pa.float32()), "DECIMAL(38,18)"),
        (pa.array([0.1]).dictionary_encode(), "DECIMAL(38,18)"),
        (pa.array([100], pa.int64()), "DECIMAL(38,18)"),
        (pa.array([Decimal("0.10")]), "DECIMAL(38,18)"),
    ],
    ids=["float", "dictionary", "integer", "decimal"],
)
def test_a_rate_of_another_type_is_the_number_that_it_is(
    folder: Path, rate: pa.Array, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A float keeps six digits; whole numbers and decimals need no spelling."""
    join = compile_pipeline(a_rate(folder, monkeypatch, "arrow", rate, type)).record.lookups[0]
    wanted = Decimal(100) if pa.types.is_integer(rate.type) else Decimal("0.1")
    assert load_lookup(join)["rates_rate"].to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("rate", "type"),
    [
        (pa.array([0.1234567], pa.float32()), "DECIMAL(38,18)"),
        (pa.array([Decimal("0.125")]), "DECIMAL(10,2)"),
        (pa.array([[0.5]]), "ARRAY<DECIMAL(10,2)>"),
        (pa.array([[("x", 0.5)]], pa.map_(pa.string(), pa.float64())), "MAP<STRING, DECIMAL(10,2)>"),
        (pa.array([{"p": 0.5}]), "STRUCT<p: DECIMAL(10,2)>"),
    ],
    ids=["float", "decimal", "array", "map", "struct"],
)
def test_no_part_of_a_look_up_is_rounded(
    folder: Path, rate: pa.Array, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in what has parts, where doubles are not looked at one by one."""
    nested = "<" in type
    made = a_rate(folder, monkeypatch, "arrow", rate, type)
    view = View("v", keys=["known"], window=Tumbling("1 day"), measures={"n": count()})
    made = replace(made, select={"known": "rates_rate IS NULL"}, views=[view])
    join = compile_pipeline(made).record.lookups[0]
    with pytest.raises(
        LookupBroken, match="the DECIMALs in it are doubles" if nested else "is .*, not DECIMAL"
    ):
        load_lookup(join)


def test_doubles_beside_decimals_are_left_alone() -> None:
    """A STRUCT may have both."""
    both = pa.struct([("x", pa.float64()), ("p", pa.decimal128(10, 2))])
    values = pa.chunked_array([pa.array([{"x": 0.1, "p": Decimal("0.25")}], both)])
    wider = pa.struct([("x", pa.float64()), ("p", pa.decimal128(12, 4))])
    assert cast_exactly(values, wider).to_pylist() == [{"x": 0.1, "p": Decimal("0.2500")}]


def twins() -> pa.Table:
    return pa.table({"same": ["a", "b", "a"], "name": ["x", "y", "z"]})


def test_tables_are_asked_now_and_then(folder: Path) -> None:
    """Asking costs little, and an epoch may be short."""
    clock: Iterator[float] = iter([0.0, 0.5, 1.5, 1.5])
    made = compile_pipeline(flights())
    lookups = Lookups(made.record.lookups, Layout(folder / "w", "p"), {}, clock=lambda: next(clock))
    before = lookups.current_versions
    first = dict(lookups.versions)
    (folder / "airlines.csv").write_text(TABLE.replace("United", "Union"))
    assert before() == first
    second = lookups.current_versions()
    assert second != first
    assert all(
        path.exists() for version in (first, second) for path in lookups.version_paths(version).values()
    )


def test_only_what_feeds_the_row_is_part_of_its_version() -> None:
    """One that nobody uses, or only an answer, changes no number."""
    plain = View("plain", keys=["carrier"], window=Tumbling("1 day"), measures={"n": count()})
    without = flights(views=[plain], lookups=[])
    assert record_version(flights(views=[plain])) == record_version(without)
    assert compile_pipeline(flights(views=[plain])).record.lookups == ()
    feeding = [
        flights(),
        flights(replace(AIRLINES, table="other.csv")),
        flights(replace(AIRLINES, on={"code": "left(carrier, 2)"})),
        flights(replace(AIRLINES, columns=["name"])),
    ]
    assert len({record_version(each) for each in [without, *feeding]}) == 5


def test_what_was_made_with_a_version_is_listed(folder: Path) -> None:
    """A table turns out to have been wrong for a week: which days have it?"""
    made = compile_pipeline(flights(AIRLINES, replace(AIRLINES, name="beside", on={"code": "airlines_name"})))
    layout = Layout(folder / "w", "records")
    shown = load_current_lookup(made.views[0].decorations[0], layout)
    assert lookups_of(made, layout)[1:] == [
        "  airlines  airlines.csv: pinned, in the rows",
        f"  beside  airlines.csv: beside by_name, version {shown.version} shown",
    ]
    master, now = Master.ensure(layout, made), datetime(2024, 3, 5, tzinfo=UTC)
    used: list[tuple[dict[int, int], dict[str, str]]] = [
        ({1: 5, 2: 2}, {"airlines": "old"}),
        ({2: 1}, {"airlines": "old", "dropped": "once"}),
        ({}, {}),
        ({5: 4}, {"airlines": "new"}),
        ({3: 1}, {"airlines": "old"}),
    ]
    for number, (rows, versions) in enumerate(used):
        accepted = {f"2024-03-0{day}T00:00:00Z": n for day, n in rows.items()}
        epoch = Epoch(number, 1, now, made.record_version, accepted=accepted, lookups=versions)
        master.commit(epoch, [])
    assert lookups_of(made, layout)[:-1] == [
        "records",
        "  airlines  airlines.csv: pinned, in the rows",
        "    old  3 epochs from 0 to 4, 9 rows, in force",
        "      2024-03-01T00:00:00Z/2024-03-04T00:00:00Z  9 rows",
        "    new  1 epoch from 3 to 3, 4 rows",
        "      2024-03-05T00:00:00Z/2024-03-06T00:00:00Z  4 rows",
        "  dropped  no longer in the definition: pinned, in the rows",
        "    once  1 epoch from 1 to 1, 1 rows",
        "      2024-03-02T00:00:00Z/2024-03-03T00:00:00Z  1 rows",
    ]


def test_a_stored_definition_has_it() -> None:
    """A version of a view that was born with a look-up runs with it."""
    made = flights()
    assert from_json(to_json(made)) == made
    assert compile_pipeline(from_json(to_json(made))).record_version == compile_pipeline(made).record_version


def wrong(changes: dict[str, Any]) -> Any:
    """Make a definition whose look-up, or which itself, is changed."""
    own = {name: value for name, value in changes.items() if name in Lookup.__dataclass_fields__}
    rest = {name: value for name, value in changes.items() if name not in own}
    return flights(**{"lookups": [replace(AIRLINES, **own)], **rest})


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "name": ({"name": "Air Lines", "prefix": "airlines_"}, "lookups[Air Lines]", "is not a valid name"),
    "twice": ({"lookups": [AIRLINES, replace(AIRLINES, prefix="b_")]}, "lookups[airlines]", "declared twice"),
    "no table": ({"table": ""}, "lookups[airlines].table", "no table"),
    "no key": ({"on": {}}, "lookups[airlines].on", "does not say how to find a row"),
    "no column": ({"columns": []}, "lookups[airlines].columns", "names no column"),
    "unknown key": ({"on": {"code": "airline"}}, "lookups[airlines].on[code]", "airline"),
    "inexact key": ({"on": {"code": "CAST(seats AS DOUBLE)"}}, "lookups[airlines].on[code]", "is DOUBLE"),
    "column type": ({"columns": ["name", "planes COUNT"]}, "lookups[airlines].columns", "unknown type"),
    "taken": (
        {"columns": ["name", "seats INT"], "prefix": "", "select": {"airlines_name": "1"}},
        "select[airlines_name]",
        "A column 'airlines_name' already exists",
    ),
    "prefix": (
        {"prefix": "s", "columns": ["eats INT"], "views": [replace(BY_NAME, keys=["seats"])]},
        "lookups[airlines].columns",
        "A column 'seats' already exists",
    ),
    "other column": (
        {"views": [replace(BY_NAME, keys=["airlines_country"])]},
        "views[by_name].keys",
        "no column 'airlines_country'",
    ),
}


@pytest.mark.parametrize(("changes", "field", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_look_up_is_told(changes: dict[str, Any], field: str, why: str) -> None:
    """It is told where the definition is written, without its table."""
    compiled, problems = compile_with_problems(wrong(changes))
    assert compiled is None
    found = next(each for each in problems if each.field.startswith(field))
    assert why in found.message
    assert found.file.endswith(".py")


def test_json_keeps_what_an_epoch_names() -> None:
    """The ledger is where a later reader finds the version."""
    scenario = Scenario(flights(), now="2024-03-02")
    scenario.send(flown("UA"))
    epoch = scenario.epoch()
    assert json.loads(epoch.to_json())["lookups"] == dict(epoch.lookups)
