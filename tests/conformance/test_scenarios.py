"""The kit for people who write pipelines: one scenario, two engines, the same answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.own_measures import Span
from tests.unit.pipelines.test_pipelines_payments import PAYMENTS, channel_declared_half_way

from seamline import (
    Batch,
    Expect,
    KafkaSource,
    Pipeline,
    Rule,
    Tumbling,
    View,
    Watermark,
    collect_distinct,
    count,
    count_true,
    first,
    formula,
    histogram,
    last,
    own,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
)
from seamline.lake.read.named_sides import side_rows
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import BadRange, CertificateFailed, NotFound, ProtocolError
from seamline.spark.stream.catch_up import catch_up

SHOP = Pipeline(
    name="shop",
    source=KafkaSource(
        topic=["orders", "returns"],
        schema="id INT NOT NULL, customer STRING, amount INT, at TIMESTAMP",
        event_time="at",
        event_id=["id"],
        watermark=Watermark("10 minutes", idle_after="1 minute"),
    ),
    rules=[Rule("known customer", "customer IS NOT NULL")],
    views=[
        View(
            "spent",
            keys=["customer"],
            window=Tumbling("1 hour"),
            measures={"orders": count(), "spent": sum("amount")},
            expect=[Expect("spent", at_least=0)],
        )
    ],
    batch=Batch("1 day", "2024-01-01"),
)
HABITS = replace(
    SHOP,
    name="habits",
    views=[
        View(
            "habits",
            keys=[],
            window=Tumbling("1 day"),
            measures={
                "first": first("customer"),
                "last": last("amount"),
                "large": count_true("amount > 10"),
                "orders": count(),
                "share": ratio("large", "orders"),
                "spread": stddev("amount", ddof=0),
                "buckets": histogram("amount", [6, 15]),
                "halves": quantiles("amount", [0.5, 1]),
                "often": top("customer", 1),
                "who": collect_distinct("customer", limit=1),
                "reach": own("amount", Span),
                "mean": formula("try_divide(total, n)", total=sum("amount * 1.0D"), n=count()),
            },
            expect=[Expect("often", not_null=True), Expect("share", at_most=1)],
        ),
    ],
)
NOW = "2024-01-05"


def order(id: int, at: str, customer: str | None = "ada", amount: int = 10) -> dict[str, object]:
    return {"id": id, "customer": customer, "amount": amount, "at": at}


@pytest.fixture(params=["plain", "spark"])
def started(request, scenario):
    """The same lines on both engines."""
    session = request.getfixturevalue("spark") if request.param == "spark" else None
    return lambda pipeline: scenario(pipeline, spark=session, now=NOW)


@pytest.fixture
def shop(started):
    return started(SHOP)


def sum_of(epoch):
    """Count late rows of both classes per interval."""
    return dict(Counter(epoch.late) + Counter(epoch.very_late))


def seen(shop, side="merged"):
    return [
        (row["customer"], f"{row['window_start']:%d %H}", row["orders"], row["spent"], row["batch_part"])
        for row in shop.answer(side=side)
    ]


def test_a_day_in_the_life_of_a_shop(shop):
    """Every step that a user may take, and what is seen after it."""
    shop.send(
        order(1, "2024-01-01T09:00Z"),
        order(2, "2024-01-01T09:30Z"),
        "{not json",
        order(3, "2024-01-01T10:00Z", None),
    )
    shop.send(order(4, "2024-01-01T09:15Z", "bob", 5), topic="returns")
    first = shop.epoch()
    assert dict(first.accepted) == {"2024-01-01T00:00:00Z": 3}
    assert [(each.offset, each.reason) for each in shop.quarantine()] == [
        (2, "malformed json"),
        (3, "rule known customer"),
    ]
    assert seen(shop) == [("ada", "01 09", 2, 20, 0), ("bob", "01 09", 1, 5, 0)]
    assert f"{shop.watermark:%d %H:%M}" == "01 09:05"

    # What the master does not hold is read again; what it holds is not.
    shop.send(order(2, "2024-01-01T09:30Z"), order(5, "2024-01-03T00:00Z"))
    assert shop.crash("slices") is None
    assert shop.crash("master") is not None
    assert [row[2] for row in seen(shop)] == [3, 1, 1]

    # The day is open while a partition may still bring rows of it.
    assert shop.batch("2024-01-01") == []
    shop.wait("5 minutes")
    assert shop.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    assert seen(shop) == [("ada", "01 09", 2, 20, 2), ("bob", "01 09", 1, 5, 1), ("ada", "03 00", 1, 10, 0)]

    # A late order counts at once, and in batch when it is dirty.
    shop.send(order(6, "2024-01-01T23:00Z", amount=7))
    assert sum_of(shop.epoch()) == {"2024-01-01T00:00:00Z": 1}
    assert ("ada", "01 23", 1, 7, 0) in seen(shop)
    assert ("ada", "01 23", 1, 7, 0) not in seen(shop, "batch")
    assert shop.batch() == ["2024-01-01T00:00:00Z"]
    assert ("ada", "01 23", 1, 7, 1) in seen(shop)

    # What fails its certificate is not served.
    shop.send(order(7, "2024-01-01T23:00Z", amount=-100))
    shop.epoch()
    with pytest.raises(CertificateFailed, match="(?s)expectations.*spent"):
        shop.batch()
    assert ("ada", "01 23", 2, -93, 1) in seen(shop)
    assert ("ada", "01 23", 1, 7, 1) in seen(shop, "batch")


def test_an_open_day_is_published_as_provisional_and_again_when_it_has_closed(started):
    """Today's number may come from the batch layer too, if the definition says so; every other check holds."""
    shop = started(replace(SHOP, batch=Batch("1 day", "2024-01-01", provisional=True)))
    day = ["2024-01-01T00:00:00Z"]
    shop.send(order(1, "2024-01-01T09:00Z"))
    shop.epoch()
    assert shop.batch() == day
    assert seen(shop) == [("ada", "01 09", 1, 10, 1)]
    assert shop.batch() == []

    # What comes later the same day is counted from the speed layer, and taken in by the next run.
    shop.send(order(2, "2024-01-01T09:30Z"))
    shop.epoch()
    assert seen(shop) == [("ada", "01 09", 2, 20, 1)]
    assert shop.batch() == day

    # Nothing new came, but the day has closed: it is built once more, and then certified.
    shop.send(order(3, "2024-01-02T09:00Z"), order(4, "2024-01-02T09:00Z", amount=-100))
    shop.epoch()
    shop.wait("5 minutes")
    with pytest.raises(CertificateFailed, match="expectations"):
        shop.batch()
    assert shop.batch("2024-01-01") == day
    assert seen(shop)[0] == ("ada", "01 09", 2, 20, 2)
    with pytest.raises(CertificateFailed, match="2024-01-02"):
        shop.batch()
    assert ("ada", "02 09", 2, -90, 0) in seen(shop)


def test_the_time_line_tells_what_happened(scenario):
    """It is what a failing test shows."""
    shop = scenario(SHOP, now=NOW)
    shop.send(order(1, "2024-01-01T09:00Z"), b"")
    shop.epoch()
    shop.send(order(2, "2024-01-02T09:00Z"), partition=1, offset=5)
    shop.crash("files")
    shop.epoch(edge=False)
    shop.wait("1 hour")
    shop.batch("2024-01-01")
    first = "watermark 2024-01-01T08:50:00Z"
    assert shop.timeline().splitlines() == [
        "shop  (| epoch  X crash  o restart  * define  ~ restate  = batch)",
        f"  |  epoch   0 edge  orders/0[0,2)  2024-01-01:+1  refused empty value:1  {first}",
        "  X  crash   killed after files, not held: its records wait",
        "  o  restart the stream starts again",
        "  |  epoch   2  orders/1[0,6)  2024-01-02:+1  watermark 2024-01-01T08:50:00Z",
        "  |  epoch   3 edge  nothing  watermark 2024-01-02T08:50:00Z",
        "  =  batch   run-1 2024-01-01T00:00:00Z/2024-01-02T00:00:00Z: published 2024-01-01T00:00:00Z at cut 3",
        "  published",
        "     spent: 2024-01-01T00:00:00Z to epoch 3",
    ]


def test_a_field_more_is_declared_half_way(scenario, spark):
    """The story of payments, as it is told in plain Python."""
    channel_declared_half_way(scenario(PAYMENTS, spark=spark, now="2026-03-02T09:05Z"))


def test_definitions_with_more_columns_and_fewer_go_on_from_each_other(shop):
    """Also when the newer one is taken back: rows of all of them count, in both layers."""
    for number, columns in enumerate(
        [["channel STRING"], ["channel STRING", "tip DECIMAL(8,2)"], [], ["channel STRING"]]
    ):
        shop.send({**order(2 * number, "2024-01-01T09:00Z"), "channel": "app", "tip": 1.5})
        assert shop.epoch().rows == 1
        shop.redefine(replace(SHOP, source=replace(SHOP.source, added=columns)))
    shop.send(order(9, "2024-01-03T00:00Z"))
    shop.epoch()
    assert seen(shop)[0] == ("ada", "01 09", 4, 40, 0)
    assert shop.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    assert seen(shop)[0] == ("ada", "01 09", 4, 40, 4)
    versions = [each.record_version.split("+")[1:] for each in shop.ledger if each.accepted]
    assert versions == [
        [],
        ["channel STRING"],
        ["channel STRING", "tip DECIMAL(8,2) exact"],
        [],
        ["channel STRING"],
    ]


def test_what_a_definition_cannot_go_on_from_is_refused(shop):
    """Another type, or another order, before a row is read; a view of another version is not for a scenario."""
    shop.redefine(replace(SHOP, source=replace(SHOP.source, added=["tip INT"])))
    shop.send({**order(1, "2024-01-01T09:00Z"), "tip": 3})
    shop.epoch()
    with pytest.raises(BadRange, match="another pipeline"):
        shop.redefine(replace(SHOP, name="shops"))
    with pytest.raises(BadRange, match="View spent is another version"):
        shop.redefine(replace(SHOP, views=[replace(SHOP.views[0], where="amount > 5"), *SHOP.views[1:]]))
    for columns in (["tip STRING"], ["channel STRING", "tip INT"]):
        with pytest.raises(ProtocolError, match=r'Epoch 0 was read with added=\["tip INT"\]'):
            shop.redefine(replace(SHOP, source=replace(SHOP.source, added=columns)))


def test_old_files_are_read_with_null(scenario, spark):
    """By a side, by a view that was behind meanwhile, and by a build before the stream starts again."""
    sided = replace(SHOP, side={"tests": "customer = 'test'"})
    added = replace(sided, source=replace(sided.source, added=["channel STRING"]))
    shop = scenario(sided, spark=spark, now=NOW)
    engine, view = shop.engine, compile_pipeline(sided).views[0].id

    def in_side():
        found = side_rows(engine.pipeline, engine.layout, "tests")
        return found["channel"].to_pylist()

    shop.send(order(1, "2024-01-01T09:00Z"), order(2, "2024-01-03T09:00Z", "test"))
    shop.epoch()
    engine.writer.frontiers[view] = -1
    shop.send(order(3, "2024-01-03T09:00Z"))
    shop.epoch()

    # The file is changed, the stream still runs as before.
    engine.pipeline = compile_pipeline(added)
    assert in_side() == [None]
    assert shop.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]

    shop.redefine(added)
    late = {"at": "2024-01-03T09:00Z", "channel": "app"}
    shop.send({**order(4, ""), **late}, {**order(5, "", "test"), **late})
    shop.epoch()
    assert engine.writer.frontiers[view] == -1
    assert catch_up(spark, engine.writer)
    shop.epoch()
    assert seen(shop) == [("ada", "01 09", 1, 10, 1), ("ada", "03 09", 2, 20, 0)]
    assert in_side() == [None, "app"]


def test_a_scenario_refuses_what_kafka_would(scenario):
    """A test of something that cannot happen proves nothing."""
    shop = scenario(SHOP)
    shop.send(b"x", b"y")
    with pytest.raises(BadRange, match="Offset 1 of orders/0 is taken"):
        shop.send(b"z", offset=1)
    with pytest.raises(NotFound, match="does not read 'refunds'"):
        shop.send(b"z", topic="refunds")
    with pytest.raises(BadRange, match="not a step of an epoch"):
        shop.crash("lunch")
    with pytest.raises(NotFound, match="no view 'sales'"):
        shop.answer("sales")


def test_a_failing_test_shows_the_time_line(pytester):
    """Nobody runs a test again only to see what it did."""
    pytester.makeconftest('pytest_plugins = ["seamline.testing.plugin"]')
    pytester.makepyfile(
        """
        from tests.conformance.test_scenarios import SHOP, order

        def test_wrong(scenario):
            shop = scenario(SHOP)
            shop.send(order(1, "2024-01-01T09:00Z"))
            shop.epoch()
            assert shop.answer() == []
        """
    )
    pytester.syspathinsert("")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*time line of scenario 1*", "*0 edge  orders/0[[]0,1)*"])


def test_every_kind_of_measure_is_one_answer_on_both_sides_of_the_seam(started):
    """Epochs, a build with its expectations, and a late row: one answer, worked out on paper."""
    shop = started(HABITS)
    shop.send(order(1, "2024-01-01T09:30Z", "bob", 20), order(2, "2024-01-01T09:00Z", "ada", 5))
    shop.epoch()
    shop.send(order(3, "2024-01-01T11:00Z", "bob", 10), order(4, "2024-01-03T00:00Z", "eve", 1))
    shop.epoch()
    expected = {
        "first": "ada",
        "last": 10,
        "large": 1,
        "orders": 3,
        "share": 1 / 3,
        "spread": pytest.approx((350 / 9) ** 0.5),
        "buckets": [1, 1, 1],
        "halves": [10.0, 20.0],
        "often": [{"value": "bob", "count": 2, "error": 0}],
        "who": {"values": ["ada"], "truncated": True},
        "reach": 15.0,
        "mean": 35 / 3,
    }
    assert measures_of(shop) == expected
    shop.batch("2024-01-01")
    assert measures_of(shop) == expected
    shop.send(order(5, "2024-01-01T08:00Z", "eve", 10))
    shop.epoch()
    late = measures_of(shop)
    assert (late["first"], late["orders"], late["buckets"], late["halves"]) == ("eve", 4, [1, 2, 1], [10, 20])


def measures_of(shop):
    """Return the first day's measures."""
    (row,) = [row for row in shop.answer() if row["window_start"].day == 1]
    return {name: row[name] for name in HABITS.views[0].measures}
