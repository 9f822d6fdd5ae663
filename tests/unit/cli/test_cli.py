"""The command line: what it prints and the exit code it leaves."""

from __future__ import annotations

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.shop import DEFINITION, START, Sale, Shop

from seamline.cli import main
from seamline.cli.look import write_pieces
from seamline.lake.store.locations import Location, list_all_files
from seamline.lake.tables.claims_table import Claims, claim_intervals, claims_of
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.time.intervals import Interval
from seamline.supervisor.sources.ageing_gaps import read_ageing_gaps


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    (definitions / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    # A bucket's place may not have such a name.
    place = warehouse / "a {ware}house" if isinstance(warehouse, Path) else warehouse
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(place))
    found = Shop(place)
    found.epoch([Sale(1, "a", 4), Sale(2, "b", 5)])
    found.build(0, 0, "g")
    found.epoch([Sale(3, "a", 6)])
    return found


TWO_SOURCES = """
from seamline import *

pipeline = Pipeline(
    name="two",
    source=[
        KafkaSource(name="orders", topic="two.orders", schema="at TIMESTAMP", event_time="at"),
        KafkaSource(name="returns", topic=["r1", "r2"], format="csv", schema="at TIMESTAMP", event_time="at"),
    ],
    views=[View("both", of=["orders", "returns"], keys=[], window=Tumbling("1 day"), measures={"n": count()})],
    batch=Batch("1 day", "2026-01-01"),
)
"""


def test_check_lists_every_problem_at_once(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One problem a run is a slow way to mend a file."""
    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "shop.sales" in said
    assert "up to 1 day ahead of Kafka's timestamps, as old as may be: it says neither" in said
    broken = (
        DEFINITION.replace('"shop"', '"broken"')
        .replace("sum(", "sum('nope') or (")
        .replace("max(", "max('no' +")
    )
    (tmp_path / "definitions" / "broken.py").write_text(broken)
    (tmp_path / "definitions" / "worse.py").write_text("import nowhere")
    assert main(["check"]) == 3
    printed = capsys.readouterr()
    assert "shop.sales" in printed.out
    assert "broken.py:" in printed.err
    assert "worse.py:1" in printed.err


def test_sources_are_listed_and_a_file_is_of_one_of_them(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of orders that went to the topic of returns would all be refused."""
    (tmp_path / "definitions" / "two.py").write_text(TWO_SOURCES)
    assert main(["check"]) == 0
    said = capsys.readouterr().out
    assert "source returns: topics r1, r2 as csv, event time at" in said
    assert "two.both  of orders, returns by no keys, tumbling 1 day" in said
    assert main(["produce", "two", "--file", "-"]) == 5
    assert "to which topic the records go: --topic, one of two.orders, r1, r2" in capsys.readouterr().err


def test_query_prints_rows_and_how_far_they_are_right(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows on stdout alone can be piped; the footer belongs to people."""
    assert main(["query", "shop.sales", "--format", "json", "--where", "customer = 'a'"]) == 0
    printed = capsys.readouterr()
    row = json.loads(printed.out)
    assert (row["orders"], row["total"], row["batch_part"], row["speed_part"]) == (2, 10, 1, 1)
    assert "up to epoch 1" in printed.err
    assert "dirty: 2013-01-01" in printed.err


@pytest.mark.parametrize("format", ["table", "json", "csv", "parquet", "arrow"])
def test_query_writes_every_format(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    """Each format holds the same rows."""
    out = tmp_path / f"out.{format}"
    assert main(["query", "shop.sales", "--format", format, "--out", str(out)]) == 0
    assert out.stat().st_size > 0
    assert [*tmp_path.glob("*.part")] == []


QUERY = ["query", "shop.sales", "--format", "csv", "--out"]


def test_a_file_that_is_replaced_keeps_its_mode_and_what_is_beside_it(shop: Shop, tmp_path: Path) -> None:
    """Others read it by that mode, and whose file another name is nobody knows."""
    out = tmp_path / "out.csv"
    out.write_text("earlier")
    out.chmod(0o604)
    (tmp_path / "out.csv.part").write_text("mine")
    for format in ("csv", "table"):
        assert main(["query", "shop.sales", "--format", format, "--out", str(out)]) == 0
        assert "orders" in out.read_text() and out.stat().st_mode & 0o777 == 0o604
    assert main([*QUERY, str(tmp_path / "new.csv")]) == 0
    (tmp_path / "plain").touch()
    assert (tmp_path / "new.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert [each.read_text() for each in tmp_path.glob("*.part")] == ["mine"]


def test_a_file_that_is_not_whole_takes_nothing_s_place(tmp_path: Path) -> None:
    """What ends in the middle looks like an answer with fewer rows."""
    out = tmp_path / "out.csv"
    out.write_text("earlier")
    with pytest.raises(ZeroDivisionError):
        write_pieces((str(1 // left).encode() for left in (1, 0)), out)
    assert out.read_text() == "earlier" and [*tmp_path.iterdir()] == [out]


def test_what_is_no_file_is_written_through(shop: Shop, tmp_path: Path) -> None:
    """Whoever may write in /dev would lose /dev/stdout, and a link to a disk with more space would be a file."""
    (tmp_path / "link.csv").symlink_to(tmp_path / "large.csv")
    assert main([*QUERY, str(tmp_path / "link.csv")]) == 0
    assert (tmp_path / "link.csv").is_symlink() and "orders" in (tmp_path / "large.csv").read_text()
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit((tmp_path / "pipe").read_text)
        assert main([*QUERY, str(tmp_path / "pipe")]) == 0
    assert read.result() == (tmp_path / "large.csv").read_text() and (tmp_path / "pipe").is_fifo()


def test_a_file_that_cannot_be_written_is_named(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelled folder is no defect."""
    assert main([*QUERY, str(tmp_path / "nowhere" / "out.csv")]) == 1
    assert "nowhere/out.csv" in capsys.readouterr().err


def test_explain_proves_a_number(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """The parts, and the master's own rows, add up to the answer."""
    assert main(["explain", "shop.sales", "--key", "customer=a", "--window", "2013-01-01"]) == 0
    printed = capsys.readouterr().out
    assert "generation g" in printed
    assert "1 rows from batch, 1 from speed" in printed
    assert "NO " not in printed


def test_explain_sees_a_number_that_does_not_add_up(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A slice that the master has no row for is found out."""
    number = next(shop.numbers)
    shop.slices.append(shop.partials([Sale(4, "a")]), from_epoch=number, to_epoch=number)
    shop.epoch([], number=number, frontier=number)
    assert main(["explain", "shop.sales", "--key", "customer=a", "--window", "2013-01-01"]) == 1
    assert "NO " in capsys.readouterr().out


def test_status_and_plan_tell_the_dirty_day(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A late row shows in both."""
    shop.epoch([], watermark=START.replace(day=3))
    assert main(["status", "shop"]) == 0
    said = capsys.readouterr().out
    assert "1 dirty" in said
    assert "as old as may be: it says neither max_past nor defaults" in said
    assert main(["plan", "shop"]) == 0
    assert "1 late row" in capsys.readouterr().out


def test_a_plan_says_why_and_what_it_costs_and_changes_nothing(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """What will happen is seen before it happens."""
    shop.epoch([], watermark=START.replace(day=3))
    before = list_all_files(shop.layout.warehouse)
    assert main(["plan", "shop", "--from", "2013-01-01", "--to", "2013-01-03", "--why"]) == 0
    printed = capsys.readouterr().out
    assert "    asked for\n" in printed
    assert f"    {shop.view.id}: 1 late row since epoch 1; cut 0\n" in printed
    assert "2 intervals, 3 rows, at most" in printed
    assert "event times up to 1 day ahead" in printed
    assert "at most 0 B" not in printed
    assert list_all_files(shop.layout.warehouse) == before


def test_an_interval_that_is_running_is_refused_before_anything_starts(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two at the same day would do the work twice, and one of them for nothing."""
    shop.epoch([], watermark=START.replace(day=3))
    span = ["--from", "2013-01-01", "--to", "2013-01-02"]
    with claim_intervals(shop.layout, "r7", "airflow:shop__batch", [Interval.parse("2013-01-01/2013-01-03")]):
        assert main(["run", "shop", *span]) == 22
        refused = capsys.readouterr().err
        assert main(["plan", "shop"]) == 0
        assert main(["status", "shop"]) == 0
    assert "2013-01-01T00:00:00Z/2013-01-02T00:00:00Z is being built by run r7 of airflow" in refused
    told = capsys.readouterr().out
    assert "leave 2013-01-01T00:00:00Z  running: run r7 of airflow:shop__batch" in told
    assert "building 2013-01-01T00:00:00Z/2013-01-03T00:00:00Z: run r7 of airflow:shop__batch" in told
    assert main(["plan", "shop"]) == 0
    assert "1 late row" in capsys.readouterr().out


def test_a_large_range_wants_approval(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A year that was meant to be a day is seen in the plan, not in the bill."""
    shop.epoch([], watermark=START.replace(day=4))
    bounded = DEFINITION.replace('start="2013-01-01")', 'start="2013-01-01", approve_above=1)')
    (tmp_path / "definitions" / "shop.py").write_text(bounded)
    built: list[object] = []
    monkeypatch.setattr("seamline.cli.building.build_and_publish", lambda *given, **_: built.append(given))
    command = ["run", "shop", "--from", "2013-01-01", "--to", "2013-01-03"]
    assert main(command) == 9
    printed = capsys.readouterr()
    assert "2 intervals, 3 rows" in printed.out
    assert "more than 1 intervals of shop" in printed.err
    assert built == []
    assert main([*command, "--approve"]) == 0
    assert len(built) == 1


def test_a_replay_builds_all_that_is_dirty_at_once(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has mended a definition waits for the whole of it; a run of every night takes as much as it may."""
    shop.epoch([Sale(24 * 60)], watermark=START.replace(day=4))
    text = DEFINITION.replace('start="2013-01-01")', 'start="2013-01-01", max_dirty=1)')
    (tmp_path / "definitions" / "shop.py").write_text(text)
    jobs: list[BuildJob] = []
    monkeypatch.setattr("seamline.cli.building.build_and_publish", lambda _, __, job, **___: jobs.append(job))
    assert main(["run", "shop", "--dirty"]) == 0
    assert main(["quarantine", "replay", "shop"]) == 0
    nightly, replayed = ([(span.end - span.start).days for span in job.spans] for job in jobs)
    assert (nightly, replayed) == ([1], [2])


def test_a_full_disk_leaves_a_sentence_a_code_and_no_claim(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever engine meets it; a claim that cannot be given back hides no reason."""

    def full(*_: object, **more: object) -> None:
        raise RuntimeError(
            "org.apache.spark.SparkException: Job aborted\n java.io.IOException: No space left on device"
        )

    shop.epoch([], watermark=START.replace(day=3))
    monkeypatch.setattr("seamline.cli.building.build_and_publish", full)
    assert main(["run", "shop", "--dirty"]) == 37
    assert "The disk is full: java.io.IOException: No space left on device" in capsys.readouterr().err
    assert claims_of(shop.layout, now=datetime.now(UTC)) == ()

    def release(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Claims, "release", release)
    assert main(["run", "shop", "--dirty"]) == 37
    assert "java.io.IOException" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["query", "shop.nothing"], 4),
        (["query", "nobody.sales"], 4),
        (["query", "shop.sales", "--from", "2013-01-02", "--to", "2013-01-01"], 5),
        (["query", "shop.sales", "--where", "amount > 1"], 3),
        (["query", "shop.sales", "--format", "parquet"], 2),
        (["explain", "shop.sales", "--key", "customer=z", "--window", "2013-01-01"], 4),
        (["run", "shop"], 5),
        (["plan", "shop", "--from", "2013-01-02", "--to", "2013-01-01"], 5),
        (["plan", "shop", "--from", "2012-01-01", "--to", "2013-01-01"], 8),
        (["run", "shop", "--from", "2999-01-01", "--to", "2999-01-02"], 8),
        (["topics", "list", "--nonsense"], 2),
        (["topics", "create", "t", "--config", "cleanup.policy"], 2),
    ],
)
def test_mistakes_leave_a_sentence_and_a_code(
    shop: Shop, capsys: pytest.CaptureFixture[str], argv: list[str], code: int
) -> None:
    """Scripts tell mistakes apart by the code; people never see a traceback."""
    assert main(argv) == code
    printed = capsys.readouterr().err
    assert printed
    assert "Traceback" not in printed


def test_a_wish_is_kept_with_its_actor(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Who stopped the stream is the first question asked."""
    assert main(["stream", "stop", "shop", "--reason", "test"]) == 0
    assert main(["status", "shop"]) == 0
    assert "wanted stopped by cli:" in capsys.readouterr().out


def test_lookups_says_when_there_are_none(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty page looks like a mistake."""
    assert main(["lookups", "shop"]) == 0
    assert capsys.readouterr().out == "shop has no look-ups\n"


def test_quarantine_says_when_there_is_none(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing refused is not an error."""
    shutil.rmtree(shop.layout.table("quarantine"), ignore_errors=True)
    assert main(["quarantine", "list", "shop"]) == 0
    assert "no quarantine" in capsys.readouterr().out


class Topic:
    """A topic of three partitions that keeps two days; the first record of each that is younger than one day."""

    def __init__(self, connection: object) -> None: ...

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None: ...

    def topic_id(self, name: str) -> str:
        return "t"

    def retention(self, name: str) -> timedelta:
        return timedelta(days=2)

    def beginning_offsets(self, name: str) -> dict[int, int]:
        return {0: 0, 1: 0, 2: 0}

    def offsets_at(self, name: str, instant: datetime) -> dict[int, int]:
        assert datetime.now(UTC) - instant > timedelta(hours=23)
        return {0: 9, 1: 5, 2: 3}


def test_what_kafka_may_delete_unread_is_named_before_it_is_gone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hole is for ever; a stream that is down over a long weekend is not yet one."""
    monkeypatch.setattr("seamline.supervisor.sources.source_losses.TopicAdmin", Topic)
    monkeypatch.setattr(
        "seamline.supervisor.sources.source_losses.read_airflow_connection", lambda name, env=None: name
    )
    assert main(["holes", "list", "shop"]) == 0
    assert capsys.readouterr().out.startswith(
        "soon: partition 0 of topic id t: offsets 3..8: unread, and older"
    )
    assert main(["upkeep", "shop"]) == 0
    assert "\nsoon: partition 0 of topic id t: offsets 3..8: unread" in capsys.readouterr().out
    assert len(read_ageing_gaps(shop.layout, lambda lanes: {}) or ()) == 1
    monkeypatch.setattr(Topic, "retention", lambda self, name: None)
    assert main(["holes", "list", "shop"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["upkeep", "shop"]) == 0
    assert "soon:" not in capsys.readouterr().out
    assert read_ageing_gaps(shop.layout, lambda lanes: {}) == ()


def test_upkeep_without_a_broker_says_so_and_is_done(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables are kept up all the same; nobody should think that the topic was looked at."""
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT", raising=False)
    assert main(["upkeep", "shop"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("not known: whether Kafka deletes what was not read: There is no connection named")
