"""What a definition promises, in two forms; and that no edit breaks a promise behind anybody's back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.shop import ROOT_EXAMPLES

from seamline.cli import main
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.contracts.broken_promises import takes_all_of
from seamline.model.compile.contracts.json_schema import make_json_schema
from seamline.model.compile.contracts.kept_contracts import list_broken_contracts
from seamline.model.compile.contracts.odcs import make_odcs
from seamline.model.types.schema import parse_type

DEFINITION = """
from seamline import *

orders = Pipeline(
    name="orders",
    description="Orders by shop.",
    source=KafkaSource(
        topic="shop.orders",
        schema="id STRING, shop STRING, items INT, price DECIMAL(10,2), facts MAP<STRING, ARRAY<DOUBLE>>, "
        "buyer STRUCT<name: STRING NOT NULL, age: INT>, at TIMESTAMP",
        event_time="at",
        event_id=["id"],
    ),
    rules=[Rule("some", "items > 0")],
    views=[
        View("daily", keys=["shop"], window=Tumbling("1 day"), measures={"n": count(), "total": sum("price")}),
    ],
    defaults="2026-11",
    batch=Batch("1 day", "2026-01-01", fresh_within="2 hours"),
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a definition."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "orders.py").write_text(DEFINITION)
    return tmp_path


def edit(folder: Path, old: str, new: str) -> list[str]:
    """Edit the definition, and return what it breaks."""
    assert old in DEFINITION
    (folder / "orders.py").write_text(DEFINITION.replace(old, new))
    found = load_catalog(folder)
    assert not found.problems
    return [each.message for each in list_broken_contracts(found.pipeline("orders"))]


def test_records_and_rows_are_json_schema(folder: Path) -> None:
    """Whoever sends records can try them by it, in any language."""
    made = make_json_schema(load_catalog(folder).pipeline("orders"))
    jsonschema.Draft202012Validator.check_schema(made)
    valid = jsonschema.Draft202012Validator(made).is_valid
    good: dict[str, Any] = {"id": "1", "at": "2026-01-01T00:00:00Z"}
    buyer = {"name": "Ann", "age": None}
    assert valid(good)
    assert valid(good | {"price": 1.5, "items": 2, "buyer": buyer, "facts": {"a": [1.5, None]}, "more": 1})
    assert valid(good | {"price": "1.50", "shop": None})
    for bad in ({"id": None}, {"items": 1.5}, {"items": 2**31}, {"price": "x"}, {"buyer": {"age": 1}}):
        assert not valid(good | bad), bad
    assert not valid({"id": "1"})
    row = made["$defs"]["daily.row"]
    assert list(row["properties"]) == ["shop", "window_start", "window_end", "n", "total"]


def test_a_contract_has_topics_and_views(folder: Path) -> None:
    """In the words of the Open Data Contract Standard."""
    made = make_odcs(load_catalog(folder).pipeline("orders"))
    topic, view = made["schema"]
    assert (made["apiVersion"], made["kind"], made["id"]) == ("v3.1.0", "DataContract", "urn:seamline:orders")
    assert made["slaProperties"] == [{"property": "latency", "value": 2, "unit": "hours"}]
    assert topic["properties"][0] == {
        "name": "id",
        "logicalType": "string",
        "physicalType": "STRING",
        "required": True,
        "primaryKey": True,
        "primaryKeyPosition": 1,
    }
    assert topic["quality"] == [{"type": "text", "name": "some", "description": "items > 0"}]
    assert topic["properties"][4]["physicalType"] == "MAP<STRING, ARRAY<DOUBLE>>"
    keys = [each["name"] for each in view["properties"] if each.get("primaryKey")]
    assert (view["physicalName"], keys) == ("orders.daily", ["shop", "window_start", "window_end"])


def test_every_shipped_definition_has_a_contract() -> None:
    """Joins, functions, patterns and answers of other systems have views, too."""
    found = load_catalog(ROOT_EXAMPLES)
    assert len(found.pipelines) > 10
    for pipeline in found.pipelines.values():
        jsonschema.Draft202012Validator.check_schema(make_json_schema(pipeline))
        assert len(make_odcs(pipeline)["schema"]) >= 2


KEEPS = {
    "another column": ("shop STRING,", "shop STRING, note STRING,"),
    "a wider column": (" items INT,", " items BIGINT,"),
    "another measure": ('"n": count()', '"n": count(), "most": max("price")'),
    "another view": ("views=[", 'views=[\n        View("all", [], Tumbling("1 day"), {"n": count()}),'),
    "no rule": ('    rules=[Rule("some", "items > 0")],\n', ""),
    "another trigger": ("defaults=", 'stream=Stream(trigger="2 seconds"),\n    defaults='),
}  # fmt: skip
BREAKS = {
    "required": ("shop STRING,", "shop STRING NOT NULL,", "of shop.orders, a record must now have shop"),
    "another type": ("shop STRING,", "shop BIGINT,", "of shop.orders, shop was STRING and is BIGINT"),
    "a rule": ("items > 0", "items > 1", "of shop.orders, rule some refuses what was accepted"),
    "event id": ('["id"]', '["id", "shop"]', "an event was known by id, and is by id, shop"),
    "a measure": ('"n": count(), ', "", "of orders.daily, n is gone"),
    "a type": ('sum("price")', 'avg("price")', "of orders.daily, total was"),
    "a view": ('"daily"', '"by_day"', "of orders.daily, it is no longer declared"),
    "a key": ('keys=["shop"]', "keys=[]", "shop is gone"),
    "a window": ('Tumbling("1 day")', 'Tumbling("1 hour")', "its window was"),
}


@pytest.mark.parametrize("case", KEEPS)
def test_what_is_added_breaks_nothing(folder: Path, case: str) -> None:
    """A contract is no lock: definitions grow."""
    assert main(["contract", "orders", "--write"]) == 0
    assert edit(folder, *KEEPS[case]) == []
    assert main(["check"]) == 0


@pytest.mark.parametrize("case", BREAKS)
def test_check_refuses_an_incompatible_edit(
    folder: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Producers would be refused, or readers would miss what they count on."""
    assert main(["contract", "orders", "--write"]) == 0
    old, new, why = BREAKS[case]
    problems = edit(folder, old, new)
    assert any(why in each for each in problems), problems
    assert main(["check"]) == 3
    said = capsys.readouterr().err
    assert "The contract of orders is broken" in said
    assert "seamline contract orders --write" in said


def test_a_contract_is_agreed_on_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its version says what an edit means: nothing, something more, or something else."""
    place = folder / "contracts" / "orders.odcs.json"

    def write() -> str:
        assert main(["contract", "orders", "--write"]) == 0
        return str(json.loads(place.read_text())["version"])

    assert [write(), write()] == ["1.0.0", "1.0.0"]
    edit(folder, *KEEPS["another column"])
    assert write() == "1.1.0"
    (folder / "orders.py").write_text(DEFINITION.replace('"n": count(), ', ""))
    assert main(["check"]) == 3
    assert write() == "2.0.0"
    assert "n is gone" in capsys.readouterr().err
    assert main(["check"]) == 0
    assert json.loads((folder / "contracts" / "orders.schema.json").read_text())["title"] == "orders"


@pytest.mark.parametrize("text", ["", "{}", '{"schema": [{}]}', "version: 1"])
def test_a_contract_that_cannot_be_read_is_a_problem(folder: Path, text: str) -> None:
    """Nobody can tell what it promises."""
    (folder / "contracts").mkdir()
    (folder / "contracts" / "orders.odcs.json").write_text(text)
    assert main(["check"]) == 3


def test_both_forms_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written unless that is asked for."""
    assert main(["contract", "orders"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "DataContract"
    assert main(["contract", "orders", "--form", "json-schema"]) == 0
    assert "$schema" in json.loads(capsys.readouterr().out)
    assert not (folder / "contracts").exists()
    assert main(["check"]) == 0


def test_a_table_is_promised_as_a_table(folder: Path) -> None:
    """Its path has slashes, which a reference in JSON Schema would take for its own."""
    text = DEFINITION.replace(
        'KafkaSource(\n        topic="shop.orders"', 'DeltaSource(\n        table="/lake/orders"'
    )
    (folder / "orders.py").write_text(text)
    pipeline = load_catalog(folder).pipeline("orders")
    table = make_odcs(pipeline)["schema"][0]
    assert (table["name"], table["physicalName"], table["physicalType"]) == (
        "orders",
        "/lake/orders",
        "table",
    )
    valid = jsonschema.Draft202012Validator(make_json_schema(pipeline)).is_valid
    assert valid({"id": "1", "at": "2026-01-01T00:00:00Z"}) and not valid({"id": None})


@pytest.mark.parametrize(
    ("was", "now", "taken"),
    [
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("DECIMAL(5,2)", "DECIMAL(10,2)", True),
        ("DECIMAL(5,2)", "DECIMAL(6,4)", False),
        ("STRUCT<a: INT>", "STRUCT<a: BIGINT, b: STRING>", True),
        ("STRUCT<a: INT>", "STRUCT<a: INT, b: STRING NOT NULL>", False),
        ("STRUCT<a: INT, b: INT>", "STRUCT<a: INT>", False),
        ("STRUCT<a: INT>", "STRUCT<a: INT NOT NULL>", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("MAP<STRING, INT>", "MAP<STRING, STRING>", False),
    ],
)
def test_a_type_may_become_one_that_takes_all_of_it(was: str, now: str, taken: bool) -> None:
    """What is added breaks nothing, unless records must have it."""
    assert takes_all_of(parse_type(now, "x"), parse_type(was, "x")) is taken
