"""The Spark build against plain Python: a small master in, generations out, published and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seamline.lake.engine import states
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.planning import job_of, plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read import merged_read
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import master_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.errors import NotFound, ProtocolError
from seamline.model.measures import avg, count, distinct, max, quantile, sum
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import Interval, floor_to
from seamline.spark.build.build import build_intervals

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = Interval(START, START + 3 * DAY)
EACH = [Interval(START + n * DAY, START + (n + 1) * DAY) for n in range(3)]
PIPELINE = compile_pipeline(
    Pipeline(
        name="shop",
        source=KafkaSource(
            topic="sales",
            schema="id BIGINT NOT NULL, customer STRING, amount BIGINT, price DOUBLE, sold_at TIMESTAMP NOT NULL",
            event_time="sold_at",
            event_id=["id"],
        ),
        views=[
            View(
                "by_customer",
                keys=["customer"],
                window=Tumbling("1 hour"),
                measures={
                    "orders": count(),
                    "spent": sum("amount"),
                    "mean": avg("price"),
                    "most": max("amount"),
                },
            ),
            View(
                "large",
                keys=[],
                window=Tumbling("1 day"),
                where="amount > 2",
                measures={
                    "orders": count(),
                    "middle": quantile("price", 0.5),
                    "buyers": distinct("customer"),
                },
            ),
        ],
        batch=Batch("1 day", "2024-01-01"),
    )
)
CHOSEN: dict[str, Callable[[Sale], bool]] = {
    "by_customer": lambda sale: True,
    "large": lambda sale: (sale.amount or 0) > 2,
}


@dataclass(frozen=True)
class Sale:
    """One event, so many minutes after START."""

    id: int
    minute: int
    customer: str | None = "ada"
    amount: int | None = 1
    price: float | None = 0.5

    @property
    def at(self) -> datetime:
        return START + timedelta(minutes=self.minute)


@dataclass
class Shop:
    """The pipeline's tables, and a plain list of what the master holds."""

    layout: Layout
    version: str = PIPELINE.record_version
    sales: list[tuple[int, Sale]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})

    def epoch(self, number: int, by_partition: dict[int, list[Sale]]) -> None:
        """Hold an epoch with these sales; each is an edge, and time is past all days."""
        rows, accepted, ranges = [], dict[str, int](), []
        for partition, some in by_partition.items():
            start = self.ends[partition]
            self.ends[partition] += len(some)
            ranges.append(OffsetRange(Lane("t", partition), start, start + len(some)))
            for offset, sale in enumerate(some, start):
                interval = PIPELINE.grid.of(sale.at).id
                accepted[interval] = accepted.get(interval, 0) + 1
                rows.append(
                    {
                        "_topic_id": "t",
                        "_partition": partition,
                        "_offset": offset,
                        "_epoch": number,
                        "_record_version": self.version,
                        "_event_time": sale.at,
                        "id": sale.id,
                        "customer": sale.customer,
                        "amount": sale.amount,
                        "price": sale.price,
                        "sold_at": sale.at,
                    }
                )
                self.sales.append((number, sale))
        epoch = Epoch(
            number,
            1,
            START,
            self.version,
            edge=True,
            ranges=tuple(ranges),
            accepted=accepted,
            watermark=START + 9 * DAY,
        )
        master = Master.ensure(self.layout, PIPELINE)
        table = pa.Table.from_pylist(rows, schema=master_schema(PIPELINE))
        master.commit(epoch, [data_files.write_data_file(table, master.table.root, f"{number}.parquet")])
        Ledger.ensure(self.layout).append([epoch])

    def job(self, run: str, *, asked: Interval | None = DAYS) -> BuildJob:
        """Plan a run: the days asked for, or the dirty ones."""
        return job_of(PIPELINE, plan_run(PIPELINE, self.layout, asked=asked, dirty=asked is None), run=run)

    def publish(self, run: str) -> None:
        """Certify without asking, and publish."""
        passed = [certificate(row) for row in Builds.ensure(self.layout).of(run)]
        Certificates.ensure(self.layout).append(passed)
        publish_run(PIPELINE, self.layout, run)

    def once(self, cut: int) -> list[Sale]:
        """List the sales up to a cut, the first of each id (ids stay within a day here)."""
        first: dict[int, Sale] = {}
        for number, sale in self.sales:
            if number <= cut:
                first.setdefault(sale.id, sale)
        return list(first.values())

    def expected(self, view: str, sales: list[Sale]) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Answer the dull way, per key and pane."""
        declared = next(each for each in PIPELINE.definition.views if each.name == view)
        compiled = PIPELINE.view(view)
        assert compiled
        groups: dict[tuple[Any, ...], list[Sale]] = {}
        for sale in filter(CHOSEN[view], sales):
            keys = (sale.customer,) if declared.keys else ()
            groups.setdefault((*keys, floor_to(sale.at, compiled.pane)), []).append(sale)
        return {
            place: {
                name: measure.present(measure.fold([getattr(each, measure.of or "id") for each in group]))
                for name, measure in declared.measures.items()
            }
            for place, group in groups.items()
        }

    def generation(self, view: str, id: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Present what a generation's table holds."""
        compiled = PIPELINE.view(view)
        assert compiled
        places = [*(key.name for key in compiled.keys), "pane"]
        held = Generations.ensure(self.layout, compiled).read(id)
        return placed(states.present_states(compiled, held, places), places)

    def answer(self, view: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Read the published answer."""
        compiled = PIPELINE.view(view)
        assert compiled
        places = [*(key.name for key in compiled.keys), "window_start"]
        found = merged_read.read_merged_answer(
            PIPELINE, compiled, self.layout, ReadRequest(side=Side.BATCH)
        ).table
        return placed(found.select([*places, *(each.name for each in compiled.measures)]), places)


def placed(table: pa.Table, places: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Index rows by their place."""
    return {tuple(row.pop(name) for name in places): row for row in table.to_pylist()}


def certificate(row: BuildRow) -> Certificate:
    """Pass a build without a check: what it is worth is tested elsewhere."""
    name, fingerprint = row.view.split("/")
    interval = PIPELINE.grid.named(row.interval)
    return Certificate(name, fingerprint, row.generation, interval, row.cut, row.run, "", START, checks=())


def by_day(rows: list[BuildRow], view: str) -> list[BuildRow]:
    """List a view's rows by day."""
    return sorted((row for row in rows if row.view.startswith(view + "/")), key=lambda row: row.interval)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Two epochs over days 0 and 2, day 1 empty; ids twice in one epoch, in two, and in both partitions."""
    made = Shop(Layout(tmp_path, "shop"))
    people = ["ada", "bob", None]
    day0 = [Sale(n, n * 47, people[n % 3], n % 5, n / 4) for n in range(24)]
    day2 = [Sale(100 + n, 2880 + n * 31, people[n % 3], None if n % 4 == 0 else n, None) for n in range(20)]
    # The copies differ from what they copy, so that it shows which one counts.
    made.epoch(
        0, {0: [*day0[:12], Sale(3, 3 * 47, "copy", 50)], 1: [Sale(4, 4 * 47, "copy", 60), *day0[12:]]}
    )
    made.epoch(1, {0: [*day2, Sale(20, 20 * 47, "copy", 70)], 1: [Sale(105, 2880 + 5 * 31, "copy", 80)]})
    return made


def test_a_build_means_what_the_definition_says(shop: Shop, spark: SparkSession) -> None:
    """Duplicates, `where`, an empty day and sketches: the generation is the plain answer at its cut."""
    rows = build_intervals(spark, PIPELINE, shop.layout, shop.job("one"))
    assert len({row.generation for row in rows}) == 1
    assert [(row.rows_read, row.duplicates) for row in by_day(rows, "large")] == [(27, 3), (0, 0), (21, 1)]
    sales = shop.once(cut=1)
    for view in PIPELINE.views:
        assert shop.generation(view.name, rows[0].generation) == shop.expected(view.name, sales)
        for row, day in zip(by_day(rows, view.name), EACH, strict=True):
            mine = [sale for sale in sales if sale.at in day]
            chosen = [sale for sale in mine if CHOSEN[view.name](sale)]
            assert (row.state_rows, row.not_selected) == (len(chosen), len(mine) - len(chosen))
            assert row.rows == len(shop.expected(view.name, mine))
    shop.publish("one")
    for view in PIPELINE.views:
        assert shop.answer(view.name) == shop.expected(view.name, sales)


def test_a_lower_cut_sees_less(shop: Shop, spark: SparkSession) -> None:
    """What a generation counts is said by its cut and nothing else."""
    rows = build_intervals(spark, PIPELINE, shop.layout, BuildJob("shop", "early", 0, (DAYS,)))
    assert [row.rows_read for row in by_day(rows, "large")] == [26, 0, 0]
    for view in PIPELINE.views:
        expected = shop.expected(view.name, shop.once(cut=0))
        assert shop.generation(view.name, rows[0].generation) == expected


def test_packed_files_are_cut_between_their_epochs(shop: Shop, spark: SparkSession) -> None:
    """Upkeep puts many epochs into one file of the master; of a generation there is one file, which it leaves."""
    assert maintain_tables(PIPELINE, shop.layout).packed["master"] == 2
    assert Master.open(shop.layout).table.actions().num_rows == 1
    for cut in (0, 1):
        rows = build_intervals(spark, PIPELINE, shop.layout, BuildJob("shop", f"to {cut}", cut, (DAYS,)))
        for view in PIPELINE.views:
            expected = shop.expected(view.name, shop.once(cut=cut))
            assert shop.generation(view.name, rows[0].generation) == expected
    for view in PIPELINE.views:
        held = Files.of(Generations.ensure(shop.layout, view).table)
        pieces = zip(held.partition("interval").to_pylist(), held.low("generation").to_pylist(), strict=True)
        assert len(set(pieces)) == held.actions.num_rows == 3
    assert maintain_tables(PIPELINE, shop.layout).packed == {"builds": 2}


def test_a_late_row_has_its_day_built_again_and_no_other(shop: Shop, spark: SparkSession) -> None:
    """Work is that of the dirty days; a copy that is late takes nothing from the row that came first."""
    build_intervals(spark, PIPELINE, shop.layout, shop.job("one"))
    shop.publish("one")
    before = ManifestTable.ensure(shop.layout).read().published
    shop.epoch(2, {0: [Sale(50, 61, "eve", 9, 2.0), Sale(0, 0, "copy", 90)]})
    job = shop.job("two", asked=None)
    assert job.spans == (EACH[0],)
    rows = build_intervals(spark, PIPELINE, shop.layout, job)
    assert {(row.interval, row.rows_read, row.duplicates) for row in rows} == {(EACH[0].id, 29, 4)}
    assert {row.expected for row in rows} == {each.generation for each in before.values()}
    shop.publish("two")
    for view in PIPELINE.views:
        assert shop.answer(view.name) == shop.expected(view.name, shop.once(cut=2))
    after = ManifestTable.ensure(shop.layout).read().published
    assert {place for place in after if after[place] != before[place]} == {
        (view.id, EACH[0].id) for view in PIPELINE.views
    }
    assert shop.job("three", asked=None).spans == ()


def test_a_cut_that_the_master_does_not_hold_is_refused(shop: Shop, spark: SparkSession) -> None:
    """A build must not claim epochs that it cannot have seen."""
    with pytest.raises(ProtocolError, match="ends at 1 .* the cut is 2"):
        build_intervals(spark, PIPELINE, shop.layout, BuildJob("shop", "one", 2, (DAYS,)))


def test_a_build_killed_before_a_commit_leaves_nothing_published(
    shop: Shop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files lie there and one view's commit may be done; a second attempt owes them nothing."""
    whole, calls = Generations.commit_files, []

    def killed(self: Generations, written: Any) -> Any:
        calls.append(self.view.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(self, written)

    with monkeypatch.context() as patched:
        patched.setattr(Generations, "commit_files", killed)
        with pytest.raises(KeyboardInterrupt):
            build_intervals(spark, PIPELINE, shop.layout, shop.job("one"))
    assert calls == ["by_customer", "large"]
    with pytest.raises(NotFound):
        publish_run(PIPELINE, shop.layout, "one")
    assert ManifestTable.ensure(shop.layout).read().published == {}
    assert shop.answer("by_customer") == {}
    build_intervals(spark, PIPELINE, shop.layout, shop.job("one"))
    shop.publish("one")
    for view in PIPELINE.views:
        assert shop.answer(view.name) == shop.expected(view.name, shop.once(cut=1))
