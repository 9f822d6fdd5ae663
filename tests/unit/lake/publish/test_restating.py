"""Restatements: what may be decided, what is dirty then, and which rows become what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.records import pipeline

from seamline import Lookup, Rule, Tumbling, View, count
from seamline.cli import main
from seamline.kernel.restated_rows import RowReprocessing
from seamline.lake.log.master import Master
from seamline.lake.publish.lookup_restating import restate_lookup
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables import builds_table, manifest_table
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.control_table import Control, ControlTable
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import ManifestTable, manifest_of
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import BadRange, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Statement, fold_statements
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.restatement import Restatement, apply_restatements
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.batch.batch_plan import plan_batch
from seamline.plan.batch.reprocessing_plan import Verdict
from seamline.serve.lookup_versions import lookups_of
from seamline.testing import Scenario
from seamline.testing.plain import Plain

DEFINITION = """
from seamline import Batch, KafkaSource, Lookup, Pipeline, Tumbling, View, count

shop = Pipeline(
    name="shop",
    source=KafkaSource(topic="sales", schema="shop STRING, at TIMESTAMP", event_time="at"),
    lookups=[
        Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["name"]),
        Lookup("mayors", "mayors.csv", on={"city": "cities_name"}, columns=["mayor"]),
    ],
    views=[View("by_city", keys=["cities_name"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch(interval="1 day", start="2024-01-01"),
)
"""
NOW = datetime(2024, 1, 9, tzinfo=UTC)
DAY = timedelta(days=1)


def span(start: str, end: str) -> Interval:
    return Interval(parse_moment(start), parse_moment(end))


def decision(version: str, first: int, last: int, epoch: int, lookup: str = "cities") -> Restatement:
    """About days of January, the last not in."""
    days = span(f"2024-01-{first:02}", f"2024-01-{last:02}")
    return Restatement(lookup, version, days, epoch, "cli:me", "moved", NOW)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A definition and its table on disk, and what `restate` is asked for by default."""
    (tmp_path / "shop.py").write_text(DEFINITION)
    (tmp_path / "cities.csv").write_text("shop,name\na,Oslo\n")
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "w"))
    return iter(["restate", "shop", "cities", "--reason", "moved"])


def held(folder: Path, *epochs: tuple[dict[int, int], str, bool]) -> Layout:
    """Commit epochs: rows by day of January, the version of cities, whether it is an edge."""
    made, layout = load_catalog(folder).pipeline("shop"), Layout(folder / "w", "shop")
    master = Master.ensure(layout, made)
    for number, (rows, version, edge) in enumerate(epochs):
        accepted = {f"2024-01-{day:02}T00:00:00Z": n for day, n in rows.items()}
        lookups = {"cities": version} if rows else {}
        epoch = Epoch(number, 1, NOW, made.record_version, edge=edge, accepted=accepted, lookups=lookups)
        master.commit(replace(epoch, watermark=NOW), [])
    return layout


READ = [({3: 5, 4: 1}, "old", True), ({4: 2}, "new", True), ({3: 1}, "later", False)]


def test_a_decision_is_kept_and_told(
    shop: Iterator[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who said so, why, and up to which epoch: the newest edge."""
    layout = held(tmp_path, *READ)
    argv = [*shop, "--from", "2024-01-03", "--to", "2024-01-05"]
    assert main([*argv, "--version", "new"]) == 0
    assert main(argv) == 0
    first, second = list_restatements(layout)
    assert (first.lookup, first.version, first.epoch, first.reason) == ("cities", "new", 1, "moved")
    assert first.span == span("2024-01-03", "2024-01-05")
    assert first.actor.startswith("cli")
    # The table as it is now has been used by no epoch; it is kept from now on.
    assert layout.lookup("cities", second.version).exists()
    control = ControlTable.ensure(layout)
    assert Control.from_json(control.read().to_json()) == control.read()
    rows = control.table.read().to_pylist()
    assert {row["state"] for row in rows} == {"restated"}
    capsys.readouterr()
    assert main(["lookups", "shop"]) == 0
    assert f"restated: {first}" in capsys.readouterr().out


def test_what_was_judged_again_is_restated_where_it_is_now(
    shop: Iterator[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another definition had refused the day: its look-up could not be mended, nor was it told by which it is."""
    layout = held(tmp_path, ({3: 5}, "old", True), ({4: 2}, "new", True))
    made = load_catalog(tmp_path).pipeline("shop")
    edited = compile_pipeline(replace(made.definition, rules=(Rule("named", "shop IS NOT NULL"),)))
    Reprocessed(edited, layout).commit(
        [], [Verdict(0, "one", {"2024-01-05T00:00:00Z": 5}, {}, {"cities": "then"})]
    )
    days = span("2024-01-05", "2024-01-06")
    facts = {"actor": "cli:me", "reason": "moved", "now": NOW}
    assert restate_lookup(edited, layout, "cities", days, version="then", **facts).epoch == 1  # type: ignore[arg-type]
    with pytest.raises(BadRange, match="Nothing of 2024-01-03"):
        restate_lookup(edited, layout, "cities", span("2024-01-03", "2024-01-04"), **facts)  # type: ignore[arg-type]
    told = lookups_of(edited, layout)
    assert told[told.index("    then  1 epoch from 0 to 0, 5 rows") + 1] == f"      {days}  5 rows"


def test_control_of_before_has_none() -> None:
    """A warehouse goes on with the next release."""
    text = Control().to_json().replace(', "restated": []', "")
    assert "restated" not in text
    assert Control.from_json(text) == Control()


@pytest.mark.parametrize(
    ("argv", "code", "fact"),
    [
        (["nothing", "--from", "2024-01-03", "--to", "2024-01-04"], 4, "has no look-up 'nothing'"),
        (["mayors", "--from", "2024-01-03", "--to", "2024-01-04"], 5, "newest version is always shown"),
        (["cities", "--from", "2024-01-03T12:00", "--to", "2024-01-05"], 5, "is inside an interval"),
        (["cities", "--from", "2024-01-05", "--to", "2024-01-03"], 5, "is not before"),
        (["cities", "--from", "2024-01-06", "--to", "2024-01-08"], 5, "was read up to epoch 1"),
        (["cities", "--from", "2024-01-03", "--to", "2024-01-04", "--version", "x"], 4, "No epoch has used"),
        (
            ["cities", "--from", "2024-01-03", "--to", "2024-01-04", "--version", "later"],
            5,
            "first used by epoch 2, and the newest edge is 1",
        ),
    ],
)
def test_what_cannot_be_restated(
    shop: Iterator[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    code: int,
    fact: str,
) -> None:
    """Nothing is written where the decision cannot be meant."""
    layout = held(tmp_path, *READ)
    assert main(["restate", "shop", *argv, "--reason", "r"]) == code
    assert fact in capsys.readouterr().err
    assert list_restatements(layout) == ()


def test_nothing_was_read_yet(
    shop: Iterator[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the first edge there is nothing to build, let alone again."""
    argv = [*shop, "--from", "2024-01-03", "--to", "2024-01-04"]
    assert main(argv) == 5
    held(tmp_path, ({3: 5}, "old", False))
    assert main(argv) == 5
    assert capsys.readouterr().err.count("the log has no edge") == 2


def test_a_broken_table_is_no_correction(
    shop: Iterator[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But one that epochs have used can be gone back to."""
    held(tmp_path, *READ)
    (tmp_path / "cities.csv").write_text("shop\na\n")
    argv = [*shop, "--from", "2024-01-03", "--to", "2024-01-04"]
    assert main(argv) == 14
    assert "has no column 'name'" in capsys.readouterr().err
    assert main([*argv, "--version", "old"]) == 0


def test_the_newest_decision_wins_in_its_days_and_epochs() -> None:
    """By hand; a row of a later epoch, of another day, or without the look-up, is left alone."""
    decisions = [
        decision("v1", 3, 6, epoch=5),
        decision("v2", 5, 8, epoch=9),
        decision("z", 3, 6, 9, "zones"),
    ]

    def version(day: int, epoch: int) -> str:
        return apply_restatements(decisions, {"cities": "v0"}, datetime(2024, 1, day, 23, tzinfo=UTC), epoch)[
            "cities"
        ]

    assert [version(day, 5) for day in range(2, 9)] == ["v0", "v1", "v1", "v2", "v2", "v2", "v0"]
    assert [version(day, 6) for day in range(2, 9)] == ["v0", "v0", "v0", "v2", "v2", "v2", "v0"]
    assert apply_restatements(decisions, {}, datetime(2024, 1, 5, tzinfo=UTC), 1) == {}


def test_a_day_is_dirty_until_a_build_that_knew_is_published() -> None:
    """By number, not by cut: a build of the same cut may be older than the decision."""
    made = compile_pipeline(pipeline("at TIMESTAMP"))
    days = {f"2024-01-0{day}T00:00:00Z": 1 for day in (1, 2, 3)}
    epochs = [Epoch(4, 1, NOW, "v", edge=True, accepted=days, watermark=NOW)]

    def reasons(*known: int) -> list[tuple[str, str]]:
        """``known`` are the decisions that the days' builds of a view knew; another view was built with all."""
        statements = [
            Statement(Act.PUBLISH, view, 4, day, "g", certified=True, seq=1, restated=number)
            for day, mine in zip(days, known, strict=False)
            for view, number in (("v/1", mine), ("w/1", 3))
        ]
        decisions = [decision("v1", 1, 3, 4), decision("v2", 2, 4, 4, "zones"), decision("v2", 2, 3, 4)]
        plan = plan_batch(
            epochs,
            fold_statements(statements, 1),
            made.grid,
            ["v/1", "w/1"],
            asked=None,
            dirty=True,
            restated=Restated(made.grid, tuple(decisions)),
        )
        return [(each.interval.id[8:10], each.reason) for each in plan.builds]

    assert reasons(0, 0, 0) == [
        ("01", "restated: cities"),
        ("02", "restated: cities, zones"),
        ("03", "restated: zones"),
    ]
    assert reasons(1, 1, 1) == [("02", "restated: cities, zones"), ("03", "restated: zones")]
    assert reasons(1, 2, 2) == [("02", "restated: cities")]
    assert reasons(3, 3) == [("03", "never built")]


CITIES = Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["name", "opened TIMESTAMP"])
BY_CITY = View("by_city", keys=["cities_name"], window=Tumbling("1 day"), measures={"n": count()})


def selling(schema: str = "shop STRING, at TIMESTAMP", **changes: Any) -> Any:
    return pipeline(schema, **{"lookups": [CITIES], "views": [BY_CITY], **changes})


def write(folder: Path, *rows: str) -> None:
    (folder / "cities.csv").write_text("\n".join(["shop,name,opened", *rows, ""]))


def rows_of(scenario: Scenario) -> pa.Table:
    """The rows of the first day as the kernel, asked as builds ask it, has them now, in order."""
    plain = scenario.engine
    assert isinstance(plain, Plain)
    plain.reprocess()
    again = RowReprocessing.of(
        scenario.pipeline, plain.layout, plain.epochs, plain.restated, plain.list_verdicts()
    )
    whole = pa.concat_tables([each.accepted for each in plain.current], promote_options="default")
    return again(whole).sort_by([("_epoch", "ascending"), ("_offset", "ascending")])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    write(tmp_path, "a,Oslo,2024-01-01T05:00:00Z")
    return tmp_path


def test_a_rule_may_name_a_column_that_earlier_rows_do_not_have(folder: Path) -> None:
    """Nothing but the table says that its conditions use it: rows of before have NULL there, as everywhere."""
    limits = Lookup("limits", "limits.csv", on={}, columns=["name"], condition="when", every="limits")
    view = View(
        "v", keys=["limit"], window=Tumbling("1 day"), explode={"limit": "limits"}, measures={"n": count()}
    )
    (folder / "limits.csv").write_text("name,when\na,true\n")
    scenario = Scenario(selling(lookups=[limits], views=[view]), now="2024-01-05")
    scenario.send({"shop": "a", "at": "2024-01-01T10:00:00Z"})
    scenario.epoch()
    scenario.redefine(selling(lookups=[limits], views=[view], added=["channel STRING"]))
    (folder / "limits.csv").write_text("name,when\na,channel = 'web'\nb,channel IS NULL\n")
    scenario.send({"shop": "a", "channel": "web", "at": "2024-01-01T10:00:00Z"})
    scenario.epoch()
    assert rows_of(scenario)["limits"].to_pylist() == [["a"], ["a"]]
    scenario.restate("limits", "2024-01-01")
    assert rows_of(scenario)["limits"].to_pylist() == [["b"], ["a"]]


def test_what_was_judged_again_knows_the_decisions_of_before(folder: Path) -> None:
    """It was made with the table as it was then: an older decision is in it, or was corrected; a later one holds."""
    scenario = Scenario(selling(), now="2024-01-05")
    scenario.send({"shop": "a", "at": "2024-01-01T10:00:00Z"})
    scenario.epoch()

    def city(now: str) -> list[str]:
        write(folder, f"a,{now},")
        return rows_of(scenario)["cities_name"].to_pylist()

    write(folder, "a,Rome,")
    scenario.restate("cities", "2024-01-01")
    assert city("Rome") == ["Rome"]
    scenario.redefine(selling(rules=[Rule("known", "shop IS NOT NULL")]))
    assert city("Bern") == ["Bern"]
    assert city("Lyon") == ["Bern"]
    scenario.restate("cities", "2024-01-01")
    assert city("Oslo") == ["Lyon"]


def test_all_but_the_coordinates_is_made_again(folder: Path) -> None:
    """Key, headers and other rows of the same batch stay what they are; a duplicate stays one."""
    declared = selling(
        "id STRING, shop STRING, at TIMESTAMP",
        event_id=["id"],
        dedup_within="1 day",
        select={"who": "concat(cities_name, _key)", "tag": "element_at(_headers, 'tag')"},
        where="cities_name <> 'Rome'",
    )
    scenario = Scenario(declared, now="2024-01-05")
    sold = {"id": "1", "shop": "a", "at": "2024-01-01T10:00:00Z"}
    scenario.send(sold, sold, key=b"k", headers={"tag": b"t"})
    scenario.send({**sold, "id": "2", "shop": "b"}, {**sold, "id": "3", "at": "2024-01-02T10:00:00Z"})
    scenario.epoch()
    before = rows_of(scenario)
    write(folder, "a,Bern,", "b,Rome,")
    scenario.restate("cities", "2024-01-01")
    after = rows_of(scenario)
    assert after.schema == before.schema
    shown = ["cities_name", "who", "tag", "_selected", "_duplicate"]
    assert [tuple(row.values()) for row in before.select(shown).to_pylist()] == [
        ("Oslo", "Oslok", "t", True, False),
        ("Oslo", "Oslok", "t", False, True),
        (None, None, None, False, False),
        ("Oslo", None, None, True, False),
    ]
    assert [tuple(row.values()) for row in after.select(shown).to_pylist()] == [
        ("Bern", "Bernk", "t", True, False),
        ("Bern", "Bernk", "t", False, True),
        ("Rome", None, None, False, False),
        ("Oslo", None, None, True, False),
    ]
    raw = [name for name in after.column_names if name in ("_value", "_key", "_headers", "_record_version")]
    assert after.select(raw) == before.select(raw)
    assert scenario.batch("2024-01-01")
    assert [(row["cities_name"], row["n"]) for row in scenario.answer() if row["window_start"].day == 1] == [
        ("Bern", 1)
    ]


def test_another_look_up_stays_as_each_epoch_had_it(folder: Path) -> None:
    """Of two that changed, one was right each time."""
    rates = Lookup("rates", "rates.csv", on={"shop": "shop"}, columns=["cents INT"])
    (folder / "rates.csv").write_text("shop,cents\na,1\n")
    scenario = Scenario(selling(lookups=[CITIES, rates], select={"cents": "rates_cents"}), now="2024-01-05")
    sold = {"shop": "a", "at": "2024-01-01T10:00:00Z"}
    for cents in (1, 1, 2, 3):
        (folder / "rates.csv").write_text(f"shop,cents\na,{cents}\n")
        scenario.send(sold)
        scenario.epoch()
    write(folder, "a,Bern,")
    (folder / "rates.csv").write_text("shop,cents\na,4\n")
    scenario.restate("cities", "2024-01-01")
    scenario.send(sold)
    scenario.epoch()
    assert [(row["cities_name"], row["rates_cents"]) for row in rows_of(scenario).to_pylist()] == [
        ("Bern", 1),
        ("Bern", 1),
        ("Bern", 2),
        ("Bern", 3),
        ("Bern", 4),
    ]


def test_the_time_of_processing_stays(folder: Path) -> None:
    """It is of the epoch, whenever a row is judged again."""
    scenario = Scenario(selling("shop STRING", event_time="processing_time()"), now="2024-01-05T10:00")
    scenario.send({"shop": "a"})
    scenario.epoch()
    write(folder, "a,Bern,")
    scenario.restate("cities", "2024-01-05")
    [row] = rows_of(scenario).to_pylist()
    assert (row["cities_name"], row["_event_time"].hour) == ("Bern", 10)


def test_a_column_that_was_added_since_stays_null(folder: Path) -> None:
    """Whatever the record had under its name: it was read without it."""
    tip = View("tips", keys=["tip"], window=Tumbling("1 day"), measures={"n": count()})
    scenario = Scenario(selling(), now="2024-01-05")
    scenario.send({"shop": "a", "at": "2024-01-01T10:00:00Z", "tip": "no number"})
    scenario.epoch()
    scenario.redefine(selling(added=["tip INT"], views=[BY_CITY, tip]))
    scenario.send({"shop": "a", "at": "2024-01-01T10:00:00Z", "tip": 5})
    scenario.epoch()
    write(folder, "a,Bern,")
    scenario.restate("cities", "2024-01-01")
    assert [(row["cities_name"], row["tip"]) for row in rows_of(scenario).to_pylist()] == [
        ("Bern", None),
        ("Bern", 5),
    ]


@pytest.mark.parametrize(
    ("changes", "table", "fact"),
    [
        ({"rules": [Rule("known", "cities_name IS NOT NULL")]}, "b,Oslo,", "is refused: rule known"),
        (
            {"select": {"moment": "coalesce(cities_opened, at)"}, "event_time": "moment"},
            "a,Oslo,2024-01-02T05:00:00Z",
            "moves to 2024-01-02T05:00:00Z, into another interval",
        ),
    ],
)
def test_a_row_that_would_be_refused_or_moved_fails_the_build(
    folder: Path, changes: dict[str, Any], table: str, fact: str
) -> None:
    """What the ledger counts of an interval must stay what a build reads of it."""
    write(folder, "a,Oslo,", "z,Rome,")
    scenario = Scenario(selling(**changes), now="2024-01-05")
    scenario.send({"shop": "a", "at": "2024-01-01T10:00:00Z"}, offset=7)
    scenario.send({"shop": "z", "at": "2024-01-04T10:00:00Z"})
    scenario.epoch()
    write(folder, table)
    scenario.restate("cities", "2024-01-01")
    with pytest.raises(ProtocolError, match=r"t/0@7 of epoch 0, reprocessed") as problem:
        rows_of(scenario)
    assert fact in problem.value.message
    with pytest.raises(ProtocolError):
        scenario.batch("2024-01-01")


def test_tables_of_before_know_of_no_restatement(tmp_path: Path) -> None:
    """Manifest and builds of a running warehouse are read on, and written on."""
    layout = Layout(tmp_path, "p")
    build = BuildRow("r", "v/1", "2024-01-01T00:00:00Z", "g", 4, 1, 1, 1, 0, 0, "", 0.5, "", NOW)
    for name, schema, row in (
        (
            "manifest",
            manifest_table.SCHEMA,
            vars(Statement(Act.PUBLISH, "v/1", 4, build.interval, "g", seq=1)),
        ),
        ("builds", builds_table.SCHEMA, vars(build)),
    ):
        older = pa.schema([field for field in schema if field.name != "restated"])
        table = Table.ensure(layout.table(name), older)
        table.append(
            [
                data_files.write_data_file(
                    pa.Table.from_pylist([row], schema=older), table.root, "first.parquet"
                )
            ]
        )
    assert manifest_of(layout).published["v/1", build.interval].restated == 0
    held = ManifestTable.ensure(layout)
    held.commit([replace(held.read().published["v/1", build.interval], generation="h", restated=2)])
    assert manifest_of(layout).published["v/1", build.interval].restated == 2
    made = Builds.ensure(layout)
    made.append([replace(build, run="s", restated=2)])
    assert [each.restated for run in "rs" for each in made.of(run)] == [0, 2]
