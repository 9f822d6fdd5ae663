"""A look-up is corrected: what functions, patterns and groups have emitted of its rows is made again in both layers."""

from __future__ import annotations

from functools import partial

import pytest
from tests.unit.group_functions import Both
from tests.unit.process_functions import Abandoned

from seamline import (
    Batch,
    CoGroup,
    CountWindow,
    KafkaSource,
    Lookup,
    Pattern,
    Pipeline,
    Process,
    Tumbling,
    View,
    Watermark,
    count,
    sum,
)
from seamline.kernel.restated_rows import open_reprocessing
from seamline.lake.audit.recounted import recount_states
from seamline.lake.tables.committed_log import CommittedLog
from seamline.testing.tables import Tables

DAY, HOUR = "2026-01-05", Tumbling("1 hour")
MARK = Watermark("10 minutes", idle_after="1 minute")
PAID = Pipeline(
    name="paid",
    source=[
        KafkaSource(
            name="logins",
            topic="logins",
            schema="user STRING, site STRING, name STRING, n INT, at TIMESTAMP",
            event_time="at",
            watermark=MARK,
            lookups=[
                Lookup("tariff", table="tariff.csv", on={"site": "site"}, columns=["total DECIMAL(10,2)"])
            ],
            select={"total": "tariff_total"},
        ),
        KafkaSource(
            name="calls",
            topic="calls",
            schema="caller STRING, n INT, at TIMESTAMP",
            event_time="at",
            watermark=MARK,
        ),
    ],
    derive=[
        Process("carts", of="logins", by=Abandoned, keys=["user"], where="total IS NOT NULL", begin="1 day"),
        Pattern(
            "risen",
            of="logins",
            keys=["user"],
            steps="low high",
            within="25 minutes",
            define={"low": "total < 3", "high": "total >= 2"},
            select={"most": "max(total)"},
        ),
        CoGroup("both", left="logins", right="calls", on={"user": "caller"}, window=HOUR, by=Both),
    ],
    views=[
        View("left", of="carts", keys=["user"], window=HOUR, measures={"n": count(), "lost": sum("amount")}),
        View("risen", of="risen", keys=["user"], window=HOUR, measures={"n": count(), "most": sum("most")}),
        View("met", of="both", keys=["user"], window=HOUR, measures={"n": count(), "worth": sum("worth")}),
        View(
            "lately",
            of="logins",
            keys=["user"],
            window=CountWindow(2, slide=1),
            measures={"n": count(), "total": sum("total")},
        ),
    ],
    batch=Batch("6 hours", DAY),
)


def login(user: str, at: str) -> dict[str, object]:
    """Return a login of the only site."""
    return {"user": user, "site": "x", "name": "y", "n": 1, "at": f"{DAY}T{at}:00Z"}


def end(life) -> None:
    """Let the watermark pass the end of the day."""
    for topic in ("logins", "calls"):
        life.send({"at": "2026-01-06T01:00:00Z"}, topic=topic)
    life.epoch()


@pytest.fixture(params=["plain", pytest.param("spark", marks=pytest.mark.faults)])
def life(request, scenario, spark, tmp_path, monkeypatch):
    """A day whose rows found a wrong tariff, over and built; give it, and what corrects the table."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    table = tmp_path / "tariff.csv"
    table.write_text("site,total\nx,2\n")
    made = scenario(PAID, spark=spark if request.param == "spark" else None, now="2026-01-09")
    made.send(login("ada", "10:40"), login("ada", "10:50"), login("bob", "11:00"), topic="logins")
    made.send({"caller": "ada", "n": 1, "at": f"{DAY}T10:45:00Z"}, topic="calls")
    made.epoch()
    end(made)
    made.batch()
    return made, lambda total: table.write_text(f"site,total\nx,{total}\n")


def told(life) -> dict[str, list[tuple[object, ...]]]:
    """Return what every view says, and hold both layers against each other."""
    found = {}
    for view in life.pipeline.views:
        names = ["user", "window_start", *(each.name for each in view.measures)]
        merged, speed = (
            [tuple(row[name] for name in names) for row in life.answer(view.name, side)]
            for side in ("merged", "speed")
        )
        assert merged == speed, view.name
        found[view.name] = [tuple(each for each in row if not hasattr(each, "tzinfo")) for row in merged]
    return found


def require_sound(life) -> None:
    """Hold the slices against what the rows of their epochs make, as decisions have them."""
    if isinstance(life.engine, Tables):
        judging = partial(open_reprocessing, life.pipeline, life.engine.layout)
        for view in life.pipeline.views:
            log = CommittedLog.pin(life.pipeline, life.engine.layout)
            assert recount_states(life.pipeline, view, life.engine.layout, log, judging).findings == (), (
                view.name
            )


def test_what_was_emitted_is_made_again(life):
    """The cart that was left has another total, and two logins that were a match are none."""
    made, correct = life
    before = told(made)
    assert before["risen"] == [("ada", 1, 2)]
    assert before["left"] == [("ada", 1, 2), ("bob", 1, 2)]
    correct(7)
    made.restate("tariff", DAY, "2026-01-06")
    made.epoch()
    made.batch()
    if isinstance(made.engine, Tables):
        made.engine.catch_up()
    after = {name: made.answer(name) for name in before}
    assert after["risen"] == []
    assert [(row["user"], row["lost"]) for row in after["left"]] == [("ada", 7), ("bob", 7)]
    assert sorted(row["total"] for row in after["lately"] if row["user"]) == [7, 7, 14]
    made.send(login("bob", "11:10"), topic="logins")
    made.epoch()
    assert [(row["user"], row["lost"]) for row in made.answer("left")] == [("ada", 7), ("bob", 7)]
    assert [row["n"] for row in made.answer("met", user="bob")] == [1]
    require_sound(made)
    made.batch()
    for name in before:
        closed = [row for row in made.answer(name) if f"{row['window_start']:%Y-%m-%d}" == DAY]
        assert closed == made.answer(name, "batch"), name
    require_sound(made)
