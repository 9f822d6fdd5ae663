"""Records of several sources in one log: each is what its source says, and all are in one order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.records import batch

from seamline import Batch, KafkaSource, Lookup, Pipeline, Rule, Tumbling, View, Watermark, count, sum
from seamline.kernel.by_source import FOREIGN
from seamline.kernel.epoch_kernel import open_worker_duckdb, validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.raw import select_new_records
from seamline.kernel.stray_intervals import REASON, StrayIntervals
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.testing import Scenario

HOUR = Tumbling("1 hour")
NOW = "2026-01-09T12:00:00Z"
ORDERS = KafkaSource(
    name="orders",
    topic="orders",
    schema="id INT, shop STRING, amount INT, at TIMESTAMP",
    event_time="at",
    event_id=["id"],
    watermark=Watermark("1 hour", idle_after="1 minute"),
    very_late="1 hour",
)
RETURNS = KafkaSource(
    name="returns",
    topic="returns",
    schema="shop STRING, id INT, at TIMESTAMP",
    format="csv",
    event_time="at",
    event_id=["shop", "id"],
    watermark=Watermark("3 hours", idle_after="10 minutes"),
    very_late="1 day",
)
SHOP = Pipeline(
    name="shop",
    source=[ORDERS, RETURNS],
    views=[
        View(
            "sold", of="orders", keys=["shop"], window=HOUR, measures={"n": count(), "total": sum("amount")}
        ),
        View("sent_back", of="returns", keys=["shop"], window=HOUR, measures={"n": count()}),
        View("both", of=["orders", "returns"], keys=["shop"], window=HOUR, measures={"n": count()}),
    ],
    batch=Batch("1 day", "2026-01-01"),
)


def order(id: int, hour: float = 10, shop: str = "a", amount: int = 1) -> dict[str, object]:
    """Return a record of an order."""
    at = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=hour)
    return {"id": id, "shop": shop, "amount": amount, "at": at.isoformat()}


def sent_back(id: int, hour: float = 10, shop: str = "a") -> str:
    """Return a record of a return."""
    return f"{shop},{id},{(datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=hour)).isoformat()}"


def counted(life: Scenario, view: str, side: str = "merged") -> dict[str, int]:
    """Return the events of each key, over all hours."""
    found: dict[str, int] = {}
    for row in life.answer(view, side):
        found[row["shop"]] = found.get(row["shop"], 0) + row["n"]
    return found


def test_a_view_counts_the_rows_of_its_sources_alone() -> None:
    """Whatever the others have in the same columns."""
    life = Scenario(SHOP, now=NOW)
    life.send(order(1), order(2, shop="b"), topic="orders")
    life.send(sent_back(1), sent_back(2), "nonsense", topic="returns")
    life.epoch()
    assert counted(life, "sold") == {"a": 1, "b": 1}
    assert counted(life, "sent_back") == {"a": 2}
    assert counted(life, "both") == {"a": 3, "b": 1}
    assert [(each.topic, each.reason) for each in life.quarantine()] == [("returns", "malformed csv")]


def test_an_id_is_that_of_its_source() -> None:
    """Orders of one id are one order, whatever their shop; a return of the same id is another event."""
    life = Scenario(SHOP, now=NOW)
    life.send(order(1), order(1, shop="b"), order(2), topic="orders")
    life.send(sent_back(1), sent_back(1), sent_back(1, shop="b"), topic="returns")
    life.send(order(90, hour=60), topic="orders")
    life.send(sent_back(90, hour=60), topic="returns")
    life.epoch()
    life.batch("2026-01-05")
    assert counted(life, "sold", "batch") == {"a": 2}
    assert counted(life, "sent_back", "batch") == {"a": 1, "b": 1}
    assert counted(life, "both", "batch") == {"a": 3, "b": 1}


def test_the_watermark_waits_for_each_source_by_its_own_policy() -> None:
    """What may be three hours late is not late when orders are at twelve."""
    life = Scenario(SHOP, now=NOW)
    life.send(order(1, hour=12), topic="orders")
    assert life.epoch().watermark is not None, "a topic of which nothing was read has no lane here"
    life.send(sent_back(1, hour=12), topic="returns")
    life.send(order(2, hour=14), topic="orders")
    life.epoch()
    assert life.watermark == datetime(2026, 1, 5, 11, tzinfo=UTC), "it never falls"
    life.send(sent_back(2, hour=15), topic="returns")
    life.epoch()
    assert life.watermark == datetime(2026, 1, 5, 12, tzinfo=UTC), "three hours behind the newest return"
    life.wait("2 minutes")
    life.epoch()
    assert life.watermark == datetime(2026, 1, 5, 12, tzinfo=UTC), "the orders are idle, the returns are not"
    life.send(order(3, hour=20), topic="orders")
    life.wait("20 minutes")
    life.epoch()
    assert life.watermark == datetime(2026, 1, 5, 19, tzinfo=UTC), "the returns are idle, and all is read"


def test_what_is_very_late_is_so_for_its_source() -> None:
    """An hour and a half behind is very late for an order, and late for a return."""
    life = Scenario(SHOP, now=NOW)
    life.send(order(1, hour=13), topic="orders")
    life.send(sent_back(1, hour=15), topic="returns")
    life.epoch()
    life.send(order(2, hour=10.5), topic="orders")
    life.send(sent_back(2, hour=10.5), topic="returns")
    epoch = life.epoch()
    assert epoch.late == {"2026-01-05T00:00:00Z": 1}
    assert epoch.very_late == {"2026-01-05T00:00:00Z": 1}


def test_a_pipeline_of_one_source_may_become_one_of_several() -> None:
    """Its records are validated again, each by the source whose topic it is of."""
    one = replace(
        ORDERS,
        name="",
        topic=["orders", "returns"],
        schema="id INT, shop STRING, at TIMESTAMP",
        event_id=["id"],
    )
    before = replace(
        SHOP, source=one, views=[View("both", keys=["shop"], window=HOUR, measures={"n": count()})]
    )
    json_returns = replace(RETURNS, format="json", rules=[Rule("known shop", "shop <> 'b'")])
    after = replace(
        SHOP,
        source=[replace(ORDERS, schema="id INT, shop STRING, at TIMESTAMP"), json_returns],
        views=[SHOP.views[2]],
    )
    life = Scenario(before, now=NOW)
    life.send(order(1), order(2), order(90, hour=60), topic="orders")
    life.send(order(1), order(2, shop="b"), order(90, hour=60), topic="returns")
    life.epoch()
    assert counted(life, "both") == {"a": 5, "b": 1}
    life.redefine(after)
    life.send(order(3), order(91, hour=60), topic="orders")
    life.send(order(91, hour=60), topic="returns")
    life.epoch()
    life.batch("2026-01-05")
    assert counted(life, "both", "batch") == {"a": 4}


def test_a_look_up_of_one_source_is_restated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the other are what they were, in the order in which they were read."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "cities.csv").write_text("shop,city\na,Rome\n")
    cities = Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["city"])
    life = Scenario(
        replace(
            SHOP,
            source=[
                replace(ORDERS, lookups=[cities], select={"city": "cities_city"}),
                replace(RETURNS, select={"city": "'?'"}),
            ],
            views=[
                View("both", of=["orders", "returns"], keys=["city"], window=HOUR, measures={"n": count()})
            ],
        ),
        now=NOW,
    )
    life.send(order(1), topic="orders")
    life.send(sent_back(1), topic="returns")
    life.send(order(2), topic="orders")
    life.send(order(90, hour=60), topic="orders")
    life.send(sent_back(90, hour=60), topic="returns")
    life.epoch()
    life.batch("2026-01-05")
    assert {row["city"]: row["n"] for row in life.answer("both", "batch")} == {"Rome": 2, "?": 1}
    (tmp_path / "cities.csv").write_text("shop,city\na,Oslo\n")
    life.restate("cities", "2026-01-05")
    life.batch("2026-01-05")
    assert {row["city"]: row["n"] for row in life.answer("both", "batch")} == {"Oslo": 2, "?": 1}


def rows_of(topics: list[str], values: list[bytes]) -> tuple[KernelConfig, pa.Table]:
    """Return records of topics as the kernel validates them."""
    made = batch(values)
    place = made.schema.get_field_index("topic")
    raw = pa.Table.from_batches([made]).set_column(place, "topic", pa.array(topics))
    arrived = pa.repeat(pa.scalar(datetime(2026, 7, 1, tzinfo=UTC), pa.timestamp("us", "UTC")), len(values))
    raw = raw.set_column(raw.schema.get_field_index("timestamp"), "timestamp", arrived)
    config = KernelConfig(
        pipeline=compile_pipeline(SHOP),
        topic_ids={topic: topic.upper() for topic in topics},
        token=1,
        epoch=0,
        committed={},
        views=frozenset(),
        master=Path(),
        quarantine=Path(),
    )
    return config, select_new_records(raw, config)


def test_rows_of_all_sources_stay_in_the_order_in_which_they_came() -> None:
    """A restated row takes the place of the one it was."""
    values = [
        b'{"id":1,"at":"2026-01-05"}',
        b"a,1,2026-01-05",
        b'{"id":2,"at":"2026-01-05"}',
        b"a,2,2026-01-05",
    ]
    config, rows = rows_of(["orders", "returns"] * 2, values)
    accepted, refused = validate_records(open_worker_duckdb(), rows, config, open_readers(config.pipeline))
    assert accepted["_offset"].to_pylist() == [0, 1, 2, 3]
    assert accepted["_source"].to_pylist() == ["orders", "returns"] * 2
    assert accepted["amount"].null_count == 4
    assert not refused.num_rows


def test_a_record_of_a_topic_that_no_source_reads_is_refused() -> None:
    """An earlier definition read it: it goes to the quarantine with that reason, and is not lost."""
    config, rows = rows_of(["orders", "claims"], [b'{"id":1,"at":"2026-01-05"}', b"{}"])
    accepted, refused = validate_records(open_worker_duckdb(), rows, config, open_readers(config.pipeline))
    assert accepted["_offset"].to_pylist() == [0]
    assert refused["_reason"].to_pylist() == [FOREIGN]
    assert refused["_offset"].to_pylist() == [1]
    config, rows = rows_of(["claims"], [b"{}"])
    accepted, refused = validate_records(open_worker_duckdb(), rows, config, open_readers(config.pipeline))
    assert (accepted.num_rows, refused.num_rows) == (0, 1)


def test_each_source_has_its_own_bound_of_strays() -> None:
    """Random times of one producer take no interval from the records of another."""
    strict = replace(SHOP, source=[replace(ORDERS, max_stray_intervals=1), RETURNS])
    config, rows = rows_of(
        ["orders"] * 3 + ["returns"] * 2,
        [
            *(b'{"id":1,"shop":"a","at":"2026-0%d-05"}' % month for month in (2, 3, 4)),
            b"a,1,2026-05-05",
            b"a,1,2026-06-05",
        ],
    )
    accepted, _ = validate_records(open_worker_duckdb(), rows, config, open_readers(config.pipeline))
    kept, astray = StrayIntervals(compile_pipeline(strict)).split(accepted)
    assert sorted(kept["_source"].to_pylist()) == ["orders", "returns", "returns"]
    assert astray["_reason"].to_pylist() == [REASON] * 2
