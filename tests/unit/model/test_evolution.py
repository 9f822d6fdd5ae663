"""Columns that a topic got later: which definitions and rows go on as before, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import records
from tests.unit.lake.publish import test_versions
from tests.unit.lake.publish.test_versions import FACTS, OLD, birth, edited, state
from tests.unit.model.test_definition import ORDERS
from tests.unit.shop import Sale, Shop

from seamline import Lookup, Rule, Text, Tumbling, View, count, max
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline, compile_with_problems
from seamline.model.compile.evolution import AND, is_compatible_version, list_earlier_versions, require_order
from seamline.model.compile.live_versions import live_views, stood_still
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.errors import DefinitionError, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.serve.explain import bounds_of, explain_number

SCHEMA = "id INT, tags ARRAY<STRING>, at TIMESTAMP"
VIEW = View("all_rows", keys=[], window=Tumbling("1 day"), measures={"n": count()})
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "added text": ({"added": "channel STRING"}, "source.added", "not a list of columns"),
    "added nothing": ({"added": None}, "source.added", "not a list of columns"),
    "added column of numbers": ({"added": [1]}, "source.added", "1 is not a column"),
    "added NOT NULL": ({"added": ["channel STRING NOT NULL"]}, "source.added", "'channel' is NOT NULL"),
    "added type": ({"added": ["channel TEXTS"]}, "source.added", "unknown type 'TEXTS'"),
    "added without a type": ({"added": ["channel"]}, "source.added", "'channel' is not a column"),
    "added and empty": ({"added": [""]}, "source.added", "is empty"),
    "added two at once": ({"added": ["a INT, b INT"]}, "source.added", "declares 2 columns"),
    "added what is there": ({"added": ["Id INT"]}, "source.added", "A column 'Id' already exists"),
    "added twice": ({"added": ["a INT", "A INT"]}, "source.added", "A column 'A' already exists"),
    "added event time": (
        {"added": ["sent TIMESTAMP"], "event_time": "sent"},
        "source.added",
        "in event_time or event_id",
    ),
    "added event id": (
        {"added": ["uid INT"], "event_id": ["uid"]},
        "source.added",
        "in event_time or event_id",
    ),
    "added over a derived one": (
        {"added": ["b INT"], "select": {"b": "id"}},
        "select[b]",
        "A column 'b' already exists",
    ),
    "added to a pattern": (
        {"added": ["b INT"], "format": Text(r"(?P<id>\d+),(?P<tags>\d+),(?P<at>\S+)")},
        "source.format",
        "Groups and columns differ in b",
    ),
}


def declared(*added: str, **changes: Any) -> CompiledPipeline:
    return compile_pipeline(records.pipeline(SCHEMA, added=list(added), **changes))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_addition_names_what_is_wrong(name: str) -> None:
    """It is found where the file is loaded, not by the first record."""
    changes, field, words = WRONG[name]
    problems = compile_with_problems(records.pipeline(SCHEMA, **changes))[1]
    assert any(each.field.startswith(field) and words in each.message for each in problems), problems


def test_what_runs_today_has_the_versions_of_before() -> None:
    """A table that is not found again is a year to be built again."""
    found = compile_pipeline(ORDERS)
    assert (found.record_version, found.views[0].fingerprint) == ("81a5d22ebc9f", "5b3cded32c97")


def test_an_added_column_that_nobody_uses_changes_no_view() -> None:
    """The record version says which columns a row was read with; it goes on from the one before."""
    made = [declared(), declared("channel STRING"), declared("channel STRING", "tip DECIMAL(8, 2)")]
    base = made[0].record_version
    assert [each.record_version for each in made] == [
        base,
        f"{base}+channel STRING",
        f"{base}+channel STRING+tip DECIMAL(8,2) exact",
    ]
    assert len({each.views[0].fingerprint for each in made}) == 1
    assert {each.views[0].uses for each in made} == {()}
    assert [field.name for field in made[2].schema.fields] == ["id", "tags", "at", "channel", "tip"]
    assert not {"channel", "tip"} & made[2].required


USES: dict[str, dict[str, Any]] = {
    "key": {"keys": ["channel"]},
    "where": {"where": "channel IS NOT NULL"},
    "measure": {"measures": {"n": max("channel")}},
    "explode": {"explode": {"tag": "channel.tags"}},
}


@pytest.mark.parametrize("place", USES)
def test_a_view_that_uses_an_added_column_is_another_version_also_of_another_type(place: str) -> None:
    """Each way of using it counts; the column beside it does not."""
    used = replace(VIEW, **USES[place])
    text, number = (
        ("STRUCT<tags: ARRAY<STRING>>", "STRUCT<tags: ARRAY<INT>>")
        if place == "explode"
        else ("STRING", "INT")
    )
    made = [
        declared(f"channel {text}", views=[used]),
        declared(f"channel {text}", "tip INT", views=[used]),
        declared(f"channel {number}", views=[used]),
        declared(f"channel {text}"),
    ]
    first, beside, retyped, unused = (each.views[0] for each in made)
    assert [field.name for field in beside.uses] == ["channel"]
    assert first.fingerprint == beside.fingerprint
    assert len({view.fingerprint for view in (first, retyped, unused)}) == 3


STEPS: dict[str, dict[str, Any]] = {
    "rule": {"rules": [Rule("r", "channel IS NOT NULL")]},
    "where": {"where": "channel IS NOT NULL"},
    "side": {"side": {"s": "channel IS NOT NULL"}},
    "select": {"select": {"known": "channel IS NOT NULL"}},
    "look-up": {
        "lookups": [Lookup("m", table="m.csv", on={"id": "channel"}, columns=["name"])],
        "views": [replace(VIEW, keys=["m_name"])],
    },
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_uses_an_added_column_makes_other_rows_also_of_another_type(step: str) -> None:
    """Rows that were judged without it are not beside these; the next column changes nothing again."""
    used = declared("channel STRING", **STEPS[step])
    retyped = declared("channel INT", **STEPS[step])
    more = declared("channel STRING", "tip INT", **STEPS[step])
    plain = declared("channel STRING")
    hashes = [each.record_version.split(AND)[0] for each in (plain, used, retyped, more)]
    assert len(set(hashes)) == 3
    assert hashes[1] == hashes[3]
    assert is_compatible_version(used.record_version, more.record_version)
    assert used.views[0].fingerprint == more.views[0].fingerprint
    assert len({each.views[0].fingerprint for each in (plain, used, retyped)}) == 3


def test_a_transform_is_given_no_added_column() -> None:
    """It could use one without a word of it in the definition; its table is that of before."""
    schema = "text STRING, at TIMESTAMP"
    changes = {"transform": "tests.unit.steps:words", "transform_schema": "words INT"}
    made = records.pipeline(schema, added=["lang STRING"], **changes)
    compiled = compile_pipeline(made)
    assert compiled.record.transform
    assert compiled.record.transform.given == ("text", "at")
    [row] = records.judged(made, [b'{"text": "a b", "lang": "en", "at": "2024-03-01"}'])
    assert (row["words"], row["lang"]) == (2, "en")
    plain = compile_pipeline(records.pipeline(schema, **changes))
    assert plain.views[0].fingerprint == compiled.views[0].fingerprint
    clash = {**changes, "added": ["words INT"]}
    with pytest.raises(DefinitionError, match="already has a column 'words'"):
        compile_pipeline(records.pipeline(schema, **clash))


COLUMNS = st.lists(st.sampled_from(["a INT", "a STRING", "b INT", "c DECIMAL(8,2)"]), max_size=4)


@given(COLUMNS, COLUMNS)
def test_two_record_versions_fit_if_one_goes_on_from_the_other(one: list[str], other: list[str]) -> None:
    """Whichever was first: a definition that is taken back reads the rows of both."""
    short, long = sorted([one, other], key=len)
    versions = [AND.join(["hash", *each]) for each in (one, other)]
    assert (
        is_compatible_version(*versions)
        == is_compatible_version(*reversed(versions))
        == (long[: len(short)] == short)
    )
    assert not is_compatible_version(versions[0], AND.join(["hasch", *other]))
    assert list_earlier_versions(versions[0]) == tuple(
        AND.join(["hash", *one[:at]]) for at in range(len(one) + 1)
    )


def test_records_are_read_with_what_they_have() -> None:
    """By hand: absent and null are NULL, another type refuses, and each row says which columns it was read with."""
    made = records.pipeline(SCHEMA, added=["channel STRING", "tip DECIMAL(8,2)"])
    values = [
        b'{"id": 1, "at": "2024-03-01"}',
        b'{"id": 2, "at": "2024-03-01", "channel": "app", "tip": 0.10}',
        b'{"id": 3, "at": "2024-03-01", "channel": null, "other": 1}',
        b'{"id": 4, "at": "2024-03-01", "tip": "much"}',
    ]
    rows = records.judged(made, values)
    assert [(row["channel"], row["tip"] and str(row["tip"])) for row in rows[:3]] == [
        (None, None),
        ("app", "0.10"),
        (None, None),
    ]
    assert rows[0]["_record_version"].endswith("+channel STRING+tip DECIMAL(8,2) exact")
    assert rows[3][0] == "mistyped field tip"


def test_a_line_of_csv_may_end_before_the_added_cells() -> None:
    """Cells go by their place: those that were there first must be."""
    made = records.pipeline("id INT, at TIMESTAMP", format="csv", added=["channel STRING", "tip INT"])
    found = records.judged(
        made, [b"1,2024-03-01", b"2,2024-03-01,app", b"3,2024-03-01,web,4", b"5", b"6,2024-03-01,a,1,2"]
    )
    assert [records.parsed(row) for row in found] == [
        {"id": 1, "at": found[0]["at"], "channel": None, "tip": None},
        {"id": 2, "at": found[0]["at"], "channel": "app", "tip": None},
        {"id": 3, "at": found[0]["at"], "channel": "web", "tip": 4},
        ["malformed csv", "1 cells, not 2 to 4: 5"],
        ["malformed csv", "5 cells, not 2 to 4: 6,2024-03-01,a,1,2"],
    ]


def adding(*added: str, views: Sequence[View] = (), **changes: Any) -> CompiledPipeline:
    """Return the shop of test_versions with added columns."""
    return edited(source=replace(FACTS.source, added=list(added)), views=views or FACTS.views, **changes)


BY_CHANNEL = View("by_channel", keys=["channel"], window=Tumbling("1 hour"), measures={"n": count()})


def test_a_served_version_goes_on_beside_a_definition_with_a_column_more() -> None:
    """And one that uses the column goes on while the definition adds it."""
    longer = adding("channel STRING", "tip INT", views=[replace(FACTS.views[0], measures={"n": count()})])
    manifest = state(*birth(OLD, Manifest(), -1))
    assert [view.id for view in live_views(longer, manifest).views] == [longer.views[0].id, OLD.views[0].id]
    assert adding("channel STRING").views[0].id == OLD.views[0].id

    with_channel = adding("channel STRING", views=[*FACTS.views, BY_CHANNEL])
    manifest = state(*birth(with_channel, Manifest(), -1))
    by_channel = with_channel.views[1].id
    assert by_channel in [view.id for view in live_views(longer, manifest).views]
    assert stood_still(longer, manifest) == {}
    assert stood_still(OLD, manifest) == {by_channel: "it uses channel, which the definition does not add"}
    assert OLD.views[0].id in [view.id for view in live_views(OLD, manifest).views]
    retyped = adding("channel INT")
    assert "record version" in stood_still(retyped, manifest)[by_channel]
    assert from_json(to_json(with_channel.definition)) == with_channel.definition


def epoch(number: int, version: str, rows: int = 1) -> Epoch:
    return Epoch(
        number, 1, test_versions.NOW, version, accepted={"2013-01-01T00:00:00Z": rows} if rows else {}
    )


def test_catching_up_takes_rows_with_fewer_columns_or_more(tmp_path: Path) -> None:
    """A view that was behind when the column came is not behind for good."""
    made = [adding(*added) for added in ([], ["a INT"], ["a INT", "b INT"])]
    ledger = [epoch(number, each.record_version) for number, each in enumerate(made)]
    for each in made:
        writer = test_versions.SimpleNamespace(pipeline=each, layout=Layout(tmp_path, each.name))
        assert test_versions.format_foreign_epochs(writer, ledger, -1) == ""  # type: ignore[arg-type]
    other = test_versions.SimpleNamespace(pipeline=adding("a STRING"), layout=Layout(tmp_path, "other"))
    assert "record version" in test_versions.format_foreign_epochs(other, ledger, -1)  # type: ignore[arg-type]


def test_a_look_up_stays_in_force_when_a_column_is_added() -> None:
    """Else a table that is broken at that restart would stop the stream."""
    old, new = adding().record_version, adding("a INT").record_version
    ledger = [replace(epoch(4, old), lookups={"m": "v1"})]
    assert in_force(ledger, new) == in_force(ledger, old) == {"m": "v1"}
    assert in_force(ledger, "another") == {}


@pytest.mark.parametrize("added", [["b INT"], ["a STRING"], ["b INT", "a INT"]])
def test_another_order_or_type_is_refused_before_a_row_is_read(added: list[str]) -> None:
    """Its rows would fit those of neither; what is new stands at the end."""
    ledger = [epoch(4, adding().record_version), epoch(5, adding("a INT").record_version)]
    with pytest.raises(ProtocolError, match=r'Epoch 5 was read with added=\["a INT"\]'):
        require_order(adding(*added).record_version, ledger)
    require_order(adding("a INT", "c INT").record_version, ledger)
    require_order(adding().record_version, ledger)
    require_order("another hash", ledger)
    require_order(adding(*added).record_version, [ledger[0], epoch(5, ledger[1].record_version, rows=0)])


def test_readers_of_the_master_see_old_files_with_null(tmp_path: Path) -> None:
    """No file is written again: the table has the column, the older file does not."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    longer = adding("channel STRING")

    def explanation() -> tuple[bool, list[object]]:
        found = explain_number(longer, shop.view, shop.layout, {"customer": "a"}, bounds_of("2013-01-01"))
        return found.proven, [row["channel"] for row in found.page]

    assert explanation() == (True, [None])
    shop.compiled, shop.master = longer, Master.ensure(shop.layout, longer)
    shop.epoch([Sale(2)])
    assert explanation() == (True, [None, None])
    paths = [shop.master.table.root / path for path in shop.master.table.actions()["path"].to_pylist()]
    assert sorted("channel" in pq.read_schema(path).names for path in paths) == [False, True]
    rows = shop.master.table.read(["_epoch", "channel"])
    assert rows["channel"].null_count == rows.num_rows == 2
    # What docs/definition.md warns of; once deltalake reads both, the warning goes.
    dataset = shop.master.table.handle.to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("channel").is_null()).num_rows == 1
