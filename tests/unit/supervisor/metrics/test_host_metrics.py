"""Metrics beside the streams' own: indexes on this host, topics, and what could not be read."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.shop import DEFINITION, Shop, opened

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import KafkaUnavailable
from seamline.plan.stream.topic_expiry import TopicExpiry
from seamline.supervisor.metrics import registry, topic_metrics, trust_metrics
from seamline.supervisor.metrics.index_metrics import INDEX_FAMILIES, read_all_index_sizes
from seamline.supervisor.metrics.metric_families import Family, PipelineCollector
from seamline.supervisor.metrics.topic_metrics import TOPIC_FAMILIES, PipelineTopics, TopicReader
from seamline.supervisor.watcher import Definitions


def show(families: Sequence[Family], found: Sequence) -> Mapping[tuple[str, ...], float]:  # type: ignore[type-arg]
    """Return the samples that a scrape shows, by the values of all labels."""
    made = CollectorRegistry()
    made.register(PipelineCollector(families, lambda: found))
    return read_samples(generate_latest(made).decode())


def read_samples(text: str, name: str = "") -> dict[tuple[str, ...], float]:
    """Read samples of one metric, or of all."""
    return {
        tuple(value for _, value in sorted(each.labels.items())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if name in ("", family.name)
    }


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A pipeline without a stream, by the settings."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(folder))
    return opened(tmp_path, monkeypatch, warehouse)


def test_indexes_have_the_size_of_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all parts; one that is not there has no series, and other files of a stream are no index."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    for name, size in (("ids/a/00000/x", 10), ("ids/a/00001/x", 5), ("joined/j/rows.duckdb", 7), ("log", 99)):
        file = tmp_path / "streams" / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
    assert show(INDEX_FAMILIES, read_all_index_sizes(["shop", "other"])) == {
        ("ids", "shop"): 15.0,
        ("joined", "shop"): 7.0,
    }


def test_topics_say_what_they_know(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share that nobody knows is absent. A cluster that is away is waited for once a scrape, not once a pipeline."""
    known = {"t": TopicExpiry(0.25, None), "u": TopicExpiry(None, 0.75)}
    monkeypatch.setattr(topic_metrics, "read_topic_expiries", lambda *given: known)
    found = show(TOPIC_FAMILIES, TopicReader(lambda: {"shop": shop.compiled}).read())
    assert found == {("time", "shop", "t"): 0.25, ("bytes", "shop", "u"): 0.75}
    now, asked = [0.0], list[str]()

    def silent(compiled: CompiledPipeline, layout: Layout, env: object) -> Mapping[str, TopicExpiry]:
        asked.append(layout.pipeline)
        now[0] += 2.0
        raise KafkaUnavailable("Nobody answers.")

    monkeypatch.setattr(topic_metrics, "read_topic_expiries", silent)
    reader = TopicReader(lambda: dict.fromkeys("abc", shop.compiled), clock=lambda: now[0])
    assert reader.read() == []
    assert asked == reader.list_unread() == ["a"]


def test_answers_that_cannot_be_read_are_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the alert of red certificates would be silent for the worst of reasons."""

    def scrape() -> dict[tuple[str, ...], float]:
        text = generate_latest(registry.make_metrics_registry(broker=False)).decode()
        return read_samples(text, "seamline_metrics_unread")

    assert scrape() == {("answers", "shop"): 0.0, ("sinks", "shop"): 0.0, ("topics", "shop"): 0.0}

    def broken(pipeline: CompiledPipeline, layout: Layout) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(trust_metrics, "read_trust", broken)
    assert scrape()[("answers", "shop")] == 1.0


class NotedLock:
    """A lock that knows how many have come to it."""

    def __init__(self) -> None:
        self.lock, self.came = threading.Lock(), threading.Semaphore(0)

    def __enter__(self) -> None:
        self.came.release()
        self.lock.acquire()

    def __exit__(self, *given: object) -> None:
        self.lock.release()


def test_scrapes_that_wait_for_a_look_share_it() -> None:
    """Where a look takes longer than Prometheus waits for it, each later scrape would look again, one after the other,
    and more would come than go."""
    go_on, looks, lock = threading.Event(), list[int](), NotedLock()

    def look() -> list[PipelineTopics]:
        looks.append(1)
        assert go_on.wait(60)
        return []

    collector = PipelineCollector(TOPIC_FAMILIES, look, lock)  # type: ignore[arg-type]
    with ThreadPoolExecutor(4) as threads:
        scrapes = [threads.submit(lambda: [*collector.collect()]) for _ in range(4)]
        for _ in scrapes:
            assert lock.came.acquire(timeout=60)
        go_on.set()
        assert [len(each.result(60)) for each in scrapes] == [len(TOPIC_FAMILIES)] * 4
    assert len(looks) == 1
    [*collector.collect()]
    assert len(looks) == 2


def test_a_file_that_is_replaced_meanwhile_ends_no_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor deletes and writes: between the listing and the look there is none for a moment."""
    (tmp_path / "shop.py").write_text(DEFINITION)
    definitions = Definitions(tmp_path)
    files = [tmp_path / "gone.py", tmp_path / "shop.py"]
    monkeypatch.setattr("seamline.supervisor.watcher.catalog.source_files", lambda folder: files)
    monkeypatch.setattr(
        "seamline.supervisor.watcher.catalog.load_catalog",
        lambda folder: SimpleNamespace(pipelines={"shop": 1}),
    )
    assert [*definitions.now()] == ["shop"]
