"""What Prometheus reads of published answers: intervals by hand, and a scrape that costs no more than it may."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.past import build
from tests.unit.shop import DAY, START, Sale, Shop, opened

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.audits_table import Audits
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.accuracy import Accuracy
from seamline.model.protocol.audit import Audit
from seamline.serve.completeness import Cell
from seamline.serve.trust import published_answers
from seamline.supervisor.metrics import paced_reading, trust_metrics
from seamline.supervisor.metrics.metric_families import PipelineCollector
from seamline.supervisor.metrics.trust_metrics import TRUST_FAMILIES, TrustReader


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Three days of sales, of which two are built."""
    made = opened(tmp_path, monkeypatch, warehouse)
    made.epoch([Sale(1), Sale(2, "b"), Sale(1500), Sale(3000)])
    build(made, "g", cut=0)
    return made


def scrape(trusts: TrustReader) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples that a scrape shows, by name and the values of the labels after the pipeline."""
    registry = CollectorRegistry()
    registry.register(PipelineCollector(TRUST_FAMILIES, trusts.read))
    return {
        family.name: {
            tuple(value for name, value in sorted(each.labels.items()) if name != "pipeline"): each.value
            for each in family.samples
        }
        for family in text_string_to_metric_families(generate_latest(registry).decode())
    }


@pytest.mark.everywhere
def test_published_answers_are_counted_by_what_they_are_worth(shop: Shop) -> None:
    """A day that is certified, until a late sale makes it dirty; days that were never built have no generation."""
    first = scrape(TrustReader(lambda: {"shop": shop.compiled}))
    assert first["seamline_intervals"][("certified", "sales")] == 1
    assert first["seamline_certified_through_timestamp_seconds"] == {("sales",): (START + DAY).timestamp()}
    assert first["seamline_late_rows"] == {("sales",): 0}
    assert first["seamline_differences_unexplained"] == {("sales",): 0}
    assert first["seamline_audit_findings"] == {}
    shop.epoch([Sale(3), Sale(4)])
    then = scrape(TrustReader(lambda: {"shop": shop.compiled}))
    assert then["seamline_intervals"][("certified", "sales")] == 0
    assert then["seamline_intervals"][("dirty", "sales")] == 1
    assert then["seamline_certified_through_timestamp_seconds"] == {}
    assert then["seamline_late_rows"] == {("sales",): 2}
    assert then["seamline_owed_since_timestamp_seconds"] == {("sales",): (START + DAY).timestamp()}
    assert {*then} == {each.name for each in TRUST_FAMILIES}


def test_a_red_certificate_counts_beside_holes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows the worst of an interval, which are its holes; the alert of certificates heeds every one."""
    truly = published_answers.list_completeness

    def holed(pipeline: CompiledPipeline, layout: Layout) -> list[Cell]:
        return [replace(each, failed=True, holes=1) for each in truly(pipeline, layout)]

    monkeypatch.setattr(published_answers, "list_completeness", holed)
    found = scrape(TrustReader(lambda: {"shop": shop.compiled}))
    assert found["seamline_intervals"][("holed", "sales")] == 3
    assert found["seamline_certificates_failed"] == {("sales",): 3}


def test_a_watermark_of_another_clock_closes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the pages: nothing is owed until the stream has read by the clock that the definition now names."""

    def count_never_built() -> float:
        found = scrape(TrustReader(lambda: {"shop": shop.compiled}))
        return found["seamline_intervals"][("never_built", "sales")]

    shop.epoch([Sale(9000)], watermark=START + 9 * DAY)
    assert count_never_built() == 3
    newest = replace(newest_epochs(shop.layout, 1)[-1], clock="another")
    monkeypatch.setattr(published_answers, "newest_epochs", lambda layout, count: [newest])
    assert count_never_built() == 0


def test_a_pipeline_is_read_again_after_a_minute(shop: Shop) -> None:
    """Between two scrapes of a quarter of a minute nothing is built; a pipeline that is gone is not shown."""
    now, pipelines = [0.0], {"shop": shop.compiled}
    trusts = TrustReader(lambda: pipelines, clock=lambda: now[0])
    assert scrape(trusts)["seamline_late_rows"] == {("sales",): 0}
    shop.epoch([Sale(3)])
    now[0] = paced_reading.EVERY - 1
    assert scrape(trusts)["seamline_late_rows"] == {("sales",): 0}
    now[0] = paced_reading.EVERY
    assert scrape(trusts)["seamline_late_rows"] == {("sales",): 1}
    pipelines.clear()
    assert scrape(trusts)["seamline_late_rows"] == {}


def test_a_scrape_reads_as_many_pipelines_as_there_is_time_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next goes on with those that were not read, and one that is broken is in nobody's way."""
    now, read = [0.0], list[str]()

    def reading(pipeline: object, layout: object) -> None:
        read.append(str(layout))
        now[0] += 2.0
        if len(read) == 2:
            raise OSError("the disk is gone")

    monkeypatch.setattr(trust_metrics, "read_trust", reading)
    trusts = TrustReader(lambda: dict.fromkeys("abc", shop.compiled), clock=lambda: now[0])
    scrape(trusts)
    assert (len(read), sorted(trusts.known)) == (2, ["a", "b"])
    scrape(trusts)
    assert (len(read), sorted(trusts.known)) == (3, ["a", "b", "c"])
    assert trusts.list_unread() == ["a", "b", "c"]


def test_early_answers_are_as_accurate_as_the_newest_audit_found(shop: Shop) -> None:
    """A share for each age, and for each measure how far its answers moved; what is no number has no series."""

    def measured(measure: str, typical: float | None, most: float | None) -> Accuracy:
        return Accuracy(measure, timedelta(minutes=10), 2, 0.5, typical, most)

    found = {"sales": (measured("total", 0.25, -0.5), measured("named", None, None))}
    audit = Audit("shop", START, 0.1, "ada", 0, (), {}, {}, (), (), accuracy=found)
    Audits.ensure(shop.layout).append(audit)
    samples = scrape(TrustReader(lambda: {"shop": shop.compiled}))
    assert samples["seamline_answer_there_ratio"] == {("600", "sales"): 0.5}
    assert samples["seamline_answer_change_ratio"] == {
        ("600", "total", "0.5", "sales"): 0.25,
        ("600", "total", "0.9", "sales"): -0.5,
    }
