"""What a record means was wrong for a while: mended, upgraded and built, as if the topic were read anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import pipeline

from seamline import CountWindow, Lookup, Pipeline, Rule, Tumbling, View, count, distinct, sum
from seamline.lake.audit.recounted import recount_states
from seamline.lake.publish.flipping import flip_view
from seamline.lake.publish.planning import plan_run
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.committed_log import CommittedLog
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.errors import ProtocolError, PublishRefused
from seamline.model.protocol.seam import Side
from seamline.plan.wording.plan_text import format_plan
from seamline.quality.certify import Certificates
from seamline.serve.explain import explain_number
from seamline.serve.pipeline_status import status_of
from seamline.serve.refused_records import format_quarantine
from seamline.spark.build import reprocessing
from seamline.spark.stream.catch_up import catch_up
from seamline.testing import Scenario
from seamline.testing.tables import Tables

Answers = dict[str, list[dict[str, Any]]]
CITIES = Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["name"])
VIEWS = [
    View(
        "by_shop",
        keys=["shop"],
        window=Tumbling("1 day"),
        measures={"n": count(), "paid": sum("cents"), "ids": distinct("id")},
    ),
    View("by_city", keys=["cities_name"], window=Tumbling("1 day"), measures={"n": count()}),
    View("pairs", keys=["shop"], window=CountWindow(2), measures={"paid": sum("cents")}),
]
WRONG = pipeline(
    "id INT NOT NULL, shop STRING, amount INT, sold TIMESTAMP, paid TIMESTAMP",
    event_time="sold",
    event_id=["id"],
    max_future="30 days",
    lookups=[CITIES],
    select={"cents": "amount * 10"},
    rules=[Rule("no refund", "amount > 0")],
    where="shop <> 'b'",
    views=VIEWS,
)
MENDED = replace(
    WRONG,
    source=replace(WRONG.source, event_time="paid"),
    select={"cents": "amount * 100"},
    rules=[Rule("known", "shop IS NOT NULL")],
    where="",
)


@pytest.fixture(params=["plain", "spark"])
def made(
    request: pytest.FixtureRequest,
    scenario: Callable[..., Scenario],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Scenario]:
    """Make the same scenario on both engines."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "cities.csv").write_text("shop,name\na,Oslo\nb,Rome\n")
    session = request.getfixturevalue("spark") if request.param == "spark" else None
    return lambda: scenario(WRONG, spark=session, now="2024-01-20")


@pytest.fixture
def read_anew(scenario: Callable[..., Scenario]) -> Callable[[Pipeline], Scenario]:
    """Read the same records by one definition from the start: what all must come to."""
    return lambda definition: live(scenario(definition, now="2024-01-20"), *[definition] * 3)


def sale(id: int, shop: str | None, amount: int, sold: int, paid: int | None) -> dict[str, Any]:
    at = {"sold": f"2024-01-{sold:02}T10:00:00Z"}
    return {"id": id, "shop": shop, "amount": amount, **at} | (
        {"paid": f"2024-01-{paid:02}T11:00:00Z"} if paid else {}
    )


FIRST = [
    sale(1, "a", 5, 1, 1),
    sale(2, "b", 7, 1, 2),  # not selected before, and another day now
    sale(3, "a", -2, 1, 1),  # refused before
    sale(4, None, 4, 2, 2),  # accepted before, refused now
    sale(1, "a", 5, 1, 1),  # a copy
    {
        "id": 5,
        "shop": "a",
        "amount": 1,
        "paid": "2024-01-09T00:00:00Z",
    },  # had no event time; a day of its own
    b"{",
]
THEN = [sale(6, "b", 3, 2, 2), sale(7, "a", 1, 3, None), sale(3, "a", -2, 1, 1)]
AFTER = [sale(8, "a", 9, 2, 2), sale(2, "b", 7, 1, 2), sale(9, "c", 1, 8, 8)]
CLOSING = sale(90, "z", 1, 15, 15)
ANSWERED_DAYS = range(1, 10)


def answers(shop: Scenario, side: str = "merged") -> Answers:
    """What every view says of the days that are over, without saying which side it is from."""
    return {
        view.name: [
            {name: value for name, value in row.items() if name not in ("batch_part", "speed_part")}
            for row in shop.answer(view.name, side=side)
            if row["window_start"].day in ANSWERED_DAYS
        ]
        for view in VIEWS
    }


def live(shop: Scenario, *definitions: Pipeline) -> Scenario:
    """Read the same records, each part by the definition that was in force."""
    for at, some in enumerate((FIRST, THEN, AFTER)):
        if at and definitions[at] is not definitions[at - 1]:
            shop.redefine(definitions[at])
        shop.send(*some, at="2024-01-10T00:00:00Z")
        shop.epoch()
    shop.send(CLOSING, at="2024-01-16T00:00:00Z")
    shop.epoch()
    return shop


def test_a_mended_definition_gives_what_a_fresh_read_would_have_given(
    made: Callable[..., Scenario], read_anew: Callable[[Pipeline], Scenario]
) -> None:
    """Rows change, come from the quarantine, go there, and move between days; one day had no row before."""
    fresh = read_anew(MENDED)
    fresh.batch()
    shop = live(made(), WRONG, WRONG, MENDED)
    assert answers(shop)["by_shop"] != answers(fresh)["by_shop"]
    assert "2024-01-09T00:00:00Z" in shop.batch()
    assert answers(shop) == answers(fresh)
    assert answers(shop)["by_city"][0] == {
        "cities_name": "Oslo",
        "window_start": datetime(2024, 1, 1, tzinfo=UTC),
        "window_end": datetime(2024, 1, 2, tzinfo=UTC),
        "n": 2,
    }
    if isinstance(shop.engine, Tables):
        engine = shop.engine
        start = datetime(2024, 1, 1, tzinfo=UTC)
        for view in engine.pipeline.views[:2]:
            flip_view(engine.pipeline, engine.layout, view.name)
            [key] = [each.name for each in view.keys]
            value = answers(shop)[view.name][0][key]
            proof = explain_number(engine.pipeline, view, engine.layout, {key: value}, (start, None))
            assert proof.proven, proof.proofs


@pytest.mark.parametrize("made", ["plain", pytest.param("spark", marks=pytest.mark.faults)], indirect=True)
def test_what_comes_after_the_mending_counts_on_top(
    made: Callable[..., Scenario], read_anew: Callable[[Pipeline], Scenario]
) -> None:
    """Late rows, a second build, a restart: nothing is judged twice and nothing twice counted."""
    shop = live(made(), WRONG, MENDED, MENDED)
    shop.batch()
    fresh = read_anew(MENDED)
    late = [sale(10, "a", 4, 1, 1), sale(5, "a", 1, 9, 9)]
    for each in (shop, fresh):
        each.restart()
        each.send(*late, at="2024-01-16T00:00:00Z")
        each.epoch()
    assert shop.batch() == ["2024-01-01T00:00:00Z", "2024-01-09T00:00:00Z"]
    fresh.batch()
    assert answers(shop) == answers(fresh)


@pytest.mark.parametrize("made", ["plain"], indirect=True)
def test_a_definition_that_is_mended_twice_is_judged_from_the_raw_bytes(
    made: Callable[..., Scenario], read_anew: Callable[[Pipeline], Scenario]
) -> None:
    """Each record version has its own reading of every epoch; none is made of another's."""
    third = replace(MENDED, select={"cents": "amount * 1000"})
    shop = live(made(), WRONG, MENDED, MENDED)
    shop.batch()
    shop.redefine(third)
    shop.wait("1 hour")
    shop.batch()
    fresh = read_anew(third)
    fresh.batch()
    assert answers(shop) == answers(fresh)


@pytest.fixture
def shop(
    scenario: Callable[..., Scenario], spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scenario:
    """A scenario on the shipped tables, mended, and not built yet."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "cities.csv").write_text("shop,name\na,Oslo\nb,Rome\n")
    return live(scenario(WRONG, spark=spark, now="2024-01-20"), WRONG, WRONG, MENDED)


def engine_of(shop: Scenario) -> Tables:
    assert isinstance(shop.engine, Tables)
    return shop.engine


def rows_of(engine: Tables) -> list[tuple[int, int]]:
    """Every record that counts as judged again, by partition and offset."""
    files = Reprocessed(engine.pipeline, engine.layout).files()
    assert files is not None
    rows = Table.open(engine.layout.records(Reprocessed(engine.pipeline, engine.layout).hash) / "rows").read(
        ["attempt", "_partition", "_offset"]
    )
    alive = {each.attempt for each in Reprocessed(engine.pipeline, engine.layout).verdicts().values()}
    return sorted((row["_partition"], row["_offset"]) for row in rows.to_pylist() if row["attempt"] in alive)


@pytest.mark.faults
def test_a_build_that_dies_between_rows_and_verdicts_leaves_nothing_that_counts(
    shop: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of an attempt count by their verdicts' commit alone."""
    engine = engine_of(shop)

    def dies(table: Table, *_: Any, **__: Any) -> int:
        if table.root.name == "verdicts":
            raise KeyboardInterrupt
        return append(table, *_, **__)

    append = Table.append
    monkeypatch.setattr(Table, "append", dies)
    with pytest.raises(KeyboardInterrupt):
        shop.batch()
    monkeypatch.setattr(Table, "append", append)
    assert Reprocessed(engine.pipeline, engine.layout).files() is None
    shop.batch()
    assert rows_of(engine) == [(0, offset) for offset in range(len(FIRST) + len(THEN))]


@pytest.mark.faults
def test_two_that_judge_the_same_at_once_count_once(shop: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever commits second is told, and goes on with what the first has written."""
    engine = engine_of(shop)
    judge, calls = reprocessing.reprocess_block, list[int]()

    def overtaken(*args: Any) -> int:
        calls.append(len(args[-1]))
        if len(calls) == 1:
            judge(*args)
        return judge(*args)

    monkeypatch.setattr(reprocessing, "reprocess_block", overtaken)
    monkeypatch.setattr(reprocessing, "RECORDS", 8)
    shop.batch()
    assert calls == [1, 1]
    assert rows_of(engine) == [(0, offset) for offset in range(len(FIRST) + len(THEN))]


def test_a_mending_is_told_and_proven_and_served_when_it_is_built(shop: Scenario) -> None:
    """Status, quarantine and certificates go by the log as it is judged now; the ledger stays as it was read."""
    engine = engine_of(shop)

    def told() -> str:
        return "\n".join(status_of(engine.pipeline, engine.layout))

    def refused() -> str:
        return "\n".join(format_quarantine(engine.pipeline, engine.layout))

    assert "2 epochs were validated by another record version" in told()
    plan = plan_run(engine.pipeline, engine.layout, asked=None, dirty=True)
    assert "first, 10 earlier records are reprocessed" in "\n".join(format_plan(plan))
    assert "rule no refund" in refused()
    with pytest.raises(PublishRefused, match="not built to its floor"):
        flip_view(engine.pipeline, engine.layout, "by_shop")
    shop.batch("2024-01-01")
    assert plan_run(engine.pipeline, engine.layout, asked=None, dirty=True).again == 0
    version = engine.pipeline.record_version
    assert f"2 epochs reprocessed by record version {version}: 7 rows, 3 refused" in told()
    assert "another record version" not in told()
    assert "rule no refund" not in refused()
    assert "rule known" in refused()
    assert "malformed json" in refused()
    found = Certificates.ensure(engine.layout).of(run="run-1")
    [check] = {
        each.found for one in found for each in one.checks if each.name == "rows read = rows in the ledger"
    }
    assert check == "4 read, 4 in the ledger"
    assert [dict(each.refused) for each in shop.ledger[:2]] == [
        {"rule no refund": 1, "missing field sold": 1, "malformed json": 1},
        {"rule no refund": 1},
    ]


@pytest.mark.faults
def test_a_definition_that_is_put_back_catches_up_over_what_the_other_read(shop: Scenario) -> None:
    """Its slices go on where they ended, from records judged again."""
    engine = engine_of(shop)
    shop.redefine(WRONG)
    writer = engine.writer
    assert not catch_up(engine.spark, writer)
    assert "quarantine replay records" in next(iter(writer.stuck.values()))
    shop.batch()
    assert catch_up(engine.spark, writer)
    assert set(writer.frontiers.values()) >= {writer.master.epoch}
    shop.epoch()
    speed = answers(shop, side="speed")["by_shop"]
    assert [(row["shop"], row["window_start"].day, row["n"]) for row in speed if row["shop"] == "c"] == [
        ("c", 8, 1)
    ]
    log = CommittedLog.pin(engine.pipeline, engine.layout)
    counted = [
        recount_states(engine.pipeline, view, engine.layout, log) for view in engine.pipeline.views[:2]
    ]
    assert all(each.states for each in counted)
    assert [each.findings for each in counted] == [(), ()], "an audit makes them of the same records"


def test_a_record_that_is_gone_stops_the_build(shop: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict on half an epoch would be a hole that nobody sees."""
    engine = engine_of(shop)
    raw = reprocessing.raw_records
    monkeypatch.setattr(reprocessing, "raw_records", lambda *args: raw(*args).where("_offset <> 3"))
    with pytest.raises(ProtocolError, match="Epoch 0 read 7 records, but master and quarantine have 6"):
        shop.batch()
    assert Reprocessed(engine.pipeline, engine.layout).files() is None
    assert plan_run(engine.pipeline, engine.layout, asked=None, dirty=True).builds
    assert not ManifestTable.ensure(engine.layout).read().published
    assert shop.answer("by_shop", side=Side.BATCH.value) == []
