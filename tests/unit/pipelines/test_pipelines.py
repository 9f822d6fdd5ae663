"""What every shipped pipeline promises: it compiles, its generator fits it, and its page is there."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import click
import pytest
from tests.unit.examples import FOLDER, catalog, declared

from seamline.cli import main
from seamline.cli.produce import produce
from seamline.local.generators import GENERATORS, Load, Record
from seamline.local.sending import pace_items, send_records
from seamline.model.errors import BadRange
from seamline.model.time.intervals import format_utc_instant

START = datetime(2026, 3, 1, tzinfo=UTC)
LOAD = Load(seed=7, rate=5.0, count=3000, start=START)
SHIPPED = sorted(GENERATORS)


def made(name: str, load: Load = LOAD) -> list[Record]:
    return list(GENERATORS[name].records(load))


def test_check_finds_every_shipped_pipeline(monkeypatch, capsys):
    """They are run by naming their folder; a problem in one would be the first thing a reader sees."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(FOLDER))
    assert main(["check"]) == 0
    assert f"{len(SHIPPED)} pipelines, no problem." in capsys.readouterr().out
    assert sorted(catalog().pipelines) == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_the_same_load_gives_the_same_bytes(name):
    """What was seen with a seed can be seen again; another seed is another story."""
    first = made(name)
    assert made(name) == first
    assert made(name, Load(8, LOAD.rate, LOAD.count, START)) != first
    assert len(first) == LOAD.count


@pytest.mark.parametrize("name", SHIPPED)
def test_records_are_sent_at_a_steady_rate(name):
    """The n-th record is due n / rate after the first, whatever is in it."""
    times = [record.at_ms for record in made(name)]
    assert {later - earlier for earlier, later in pairwise(times)} == {200}
    assert times[0] == LOAD.start_ms


@pytest.mark.parametrize("name", SHIPPED)
def test_only_bad_records_are_refused_each_for_its_reason(name, scenario):
    """Whatever else a generator sends, its definition takes; and nothing happens before the start."""
    records = made(name)
    end = START + timedelta(seconds=LOAD.count / LOAD.rate)
    story = scenario(declared(name), now=format_utc_instant(end))
    for record in records:
        story.send(record.value, key=record.key, at=instant_of(record), topic=record.topic)
    held = story.epoch()
    bad = Counter(record.kind.removeprefix("bad:") for record in records if record.kind.startswith("bad:"))
    assert dict(held.refused) == dict(bad)
    places: Counter[str] = Counter()
    expected = []
    for record in records:
        topic = record.topic or GENERATORS[name].topic
        if record.kind.startswith("bad:"):
            expected.append((topic, places[topic]))
        places[topic] += 1
    assert sorted((each.topic, each.offset) for each in story.quarantine()) == sorted(expected)
    assert sum(held.accepted.values()) == LOAD.count - bad.total()
    assert min(held.accepted) >= format_utc_instant(START)
    assert bad
    assert {"event", "late"} <= {record.kind for record in records}


def instant_of(record: Record) -> str:
    return datetime.fromtimestamp(record.at_ms / 1000, UTC).isoformat()


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_pipeline_has_a_page(name):
    """A reader finds what it shows and how to run it; the commands name it and its topic."""
    page = (Path(__file__).parents[3] / "docs" / "pipelines" / f"{name}.md").read_text()
    assert f"seamline produce {name} " in page
    assert f"seamline topics create {GENERATORS[name].topic} " in page


def test_a_load_of_nothing_is_refused():
    """A rate of nothing would never end."""
    with pytest.raises(BadRange):
        Load(seed=1, rate=0, count=1, start=START)
    with pytest.raises(BadRange):
        Load(seed=1, rate=1, count=0, start=START)


def test_an_item_waits_until_its_time_has_come(monkeypatch):
    """Records a second apart are a second apart, or half of it at twice the speed; late ones do not wait."""
    clock = [100.0]
    monkeypatch.setattr("seamline.local.sending.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        "seamline.local.sending.time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    items = [Record(at, None, b"") for at in (5000, 6000, 9000)]
    assert [clock[0] for _ in pace_items(items, 2)] == [100.0, 100.5, 102.0]
    assert [clock[0] for _ in pace_items(items, None)] == [102.0] * 3


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ad_campaigns", "--journal", "x"], "--journal does not apply to records of a generator"),
        (["flights", "--rate", "5"], "--rate does not apply to records of the year 2013"),
        (["ad_campaigns", "--file", "-", "--seed", "5"], "--seed does not apply to records of a file"),
        (["orders"], "orders has no generator"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(argv, said):
    """A seed that is left unheard gives other numbers than were asked for."""
    with pytest.raises(click.UsageError, match=said):
        produce.main(argv, standalone_mode=False)


def test_a_generator_sends_to_its_own_topic_only(monkeypatch, tmp_path, capsys):
    """Somebody's own pipeline of the same name must not be filled with invented events."""
    text = (FOLDER / "ad_campaigns.py").read_text().replace("examples.ad_events", "real.ad_events")
    (tmp_path / "ad_campaigns.py").write_text(text)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    assert main(["produce", "ad_campaigns", "--count", "1"]) == 4
    assert "its generator writes examples.ad_events" in capsys.readouterr().err


class Broker:
    """Takes records in the place of a RecordWriter; ``breaks`` is the number of the one it is stopped at."""

    def __init__(self, breaks: int = -1) -> None:
        self.sent: list[dict[str, object]] = []
        self.breaks, self.flushed, self.closed = breaks, 0, False

    def __call__(self, connection, *, on_delivered=None):
        return self

    def send(self, topic, **record):
        if len(self.sent) == self.breaks:
            raise KeyboardInterrupt
        self.sent.append({"topic": topic, **record})

    def flush(self):
        self.flushed = len(self.sent)

    def close(self):
        self.closed = True


def test_produce_sends_what_the_generator_makes(monkeypatch, capsys):
    """Keys, bytes and Kafka timestamps are the generator's; the command says how to send the same again."""
    broker = Broker()
    monkeypatch.setattr("seamline.local.sending.RecordWriter", broker)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(FOLDER))
    monkeypatch.setenv(
        "AIRFLOW_CONN_KAFKA_DEFAULT",
        '{"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:9"}}',
    )
    asked = ["--rate", "1000", "--seed", "3", "--seconds", "0.5", "--from", "2026-03-01"]
    assert main(["produce", "payments", *asked, "--speedup", "1000000"]) == 0
    expected = made("payments", Load(3, 1000, 500, START))
    assert [(each["topic"], each["key"], each["value"], each["timestamp_ms"]) for each in broker.sent] == [
        ("examples.payments", record.key, record.value, record.at_ms) for record in expected
    ]
    assert (broker.flushed, broker.closed) == (500, True)
    said = capsys.readouterr().out
    assert "(--seed 3 --from 2026-03-01T00:00:00Z)" in said
    counted = Counter(record.kind for record in expected)
    assert all(f"{number} {kind}" in said for kind, number in counted.items())


def test_an_interrupt_flushes_what_was_sent(monkeypatch):
    """Who stops a generator by hand has sent what it had sent."""
    broker = Broker(breaks=2)
    monkeypatch.setattr("seamline.local.sending.RecordWriter", broker)
    with pytest.raises(KeyboardInterrupt):
        send_records(None, "t", made("payments"))
    assert (broker.flushed, broker.closed) == (2, True)
