"""Commands about sinks: what an audit says, and how a range that is to be sent again is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store
from tests.unit.sinks.sending_shop import refresh

from seamline import FileSink, RedisSink
from seamline.cli import main
from seamline.lake.storage.layout import definitions_folder
from seamline.lake.store.locations import Location
from seamline.model.compile.catalog import load_pipeline
from seamline.model.errors import AuditFailed, BadRange
from seamline.plan.stream.sink_facts import SinkFacts, format_shown, format_sink_notes

SINKS = """    sinks=[KafkaSink("sales", topic="sales.out", name="out")],
    batch="""


@pytest.fixture
def store(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A shop with some rows that are shown, whose sink writes to memory."""
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    text = DEFINITION.replace("    batch=", SINKS).replace("import Batch,", "import Batch, KafkaSink,")
    (definitions / "shop.py").write_text(text)
    for name, value in (("PIPELINES", definitions), ("WAREHOUSE", warehouse), ("HOME", tmp_path / "home")):
        monkeypatch.setenv(f"SEAMLINE_{name}", str(value))
    shop = Shop(warehouse, load_pipeline(definitions_folder(), "shop"))
    shop.epoch([Sale(1), Sale(70, "b"), Sale(25 * 60)], watermark=START + DAY)
    refresh(shop)
    store = Store()
    monkeypatch.setattr("seamline.sinks.targets.KafkaTarget", lambda *_: MemoryTarget(store))
    monkeypatch.setattr("seamline.sinks.targets.read_airflow_connection", lambda *_: None)
    return store


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run a command, and return its exit code and what it says."""
    code = main(["sinks", *words])
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.slow
def test_an_audit_names_rows_and_sending_again_mends_them(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong comes with the columns in which it is, and the command that mends it."""
    assert "nothing has been sent yet" in run(capsys, "audit", "shop")[1]
    code, said = run(capsys, "resend", "shop", "out", "--from", "2013-01-01T00:00Z")
    assert (code, "everything is, by" in said) == (0, True)
    assert run(capsys, "run", "shop", "--once")[0] == 0
    code, said = run(capsys, "audit", "shop", "out")
    assert (code, "3 rows held, 3 to be there" in said, "nothing is wrong" in said) == (0, True, True)
    [place, *_] = store.rows
    store.rows[place] = {**store.rows[place], "total": 8}
    code, said = run(capsys, "audit", "shop")
    assert code == AuditFailed.exit_code
    assert "WRONG 1 row are others than are served" not in said
    assert "WRONG 1 row is another than is served" in said
    assert "total 8, served 1" in said
    assert "seamline sinks resend shop out --from TIME" in said
    code, said = run(capsys, "audit", "shop", "--format", "json", "--from", "2013-01-02T00:00Z")
    assert (code, json.loads(said)["held"]) == (0, 1)
    code, said = run(
        capsys, "resend", "shop", "out", "--from", "2013-01-01T00:00Z", "--to", "2013-01-02T00:00Z"
    )
    assert "2013-01-01T00:00:00Z to 2013-01-02T00:00:00Z is sent again by" in said
    assert "2013-01-02T00:00:00Z is sent again, 0 rows so far" in run(capsys, "list", "shop")[1]
    assert main(["stream", "list", "--no-broker"]) == 0
    assert "is sent again, 0 rows so far; ended" in capsys.readouterr().out
    assert run(capsys, "run", "shop", "--once")[0] == 0
    assert run(capsys, "audit", "shop")[0] == 0


@pytest.mark.slow
def test_a_number_is_explained_to_its_target(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Who asks where a number comes from asks where it went, too."""
    run(capsys, "run", "shop", "--once")
    words = ("explain", "shop.sales", "--key", "customer=a", "--window", "2013-01-01T00:00:00Z")
    assert main([*words]) == 0
    assert "out, topic sales.out of kafka_default: shows version 1, the newest" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("--to", "2013-01-02T00:00Z"), ("--from", "2013-01-02T00:00Z", "--to", "2013-01-01T00:00Z")],
)
def test_a_range_has_a_beginning_and_is_not_empty(
    store: Store, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """Without one the target would be cleared, which nobody asked for."""
    assert run(capsys, "resend", "shop", "out", *words)[0] == BadRange.exit_code


@pytest.mark.slow
def test_an_audit_of_no_windows_is_refused(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """It would find nothing wrong, whatever is there."""
    words = ("--from", "2013-01-02T00:00Z", "--to", "2013-01-01T00:00Z")
    code, said = run(capsys, "audit", "shop", *words)
    assert (code, "No window starts in" in said) == (BadRange.exit_code, True)


def test_a_sink_is_a_note_of_its_stream() -> None:
    """How far it is, what its process does, and why it fails."""
    known: dict[str, Any] = {
        "name": "out",
        "view": "sales",
        "target": "topic out of kafka_default",
        "when": "change",
    }
    behind = SinkFacts(
        **known, state="failed", version=3, newest=5, at="x", behind_seconds=90.0, error="no login"
    )
    never = SinkFacts(**known, newest=5)
    first = SinkFacts(**known, state="sending", toward=5, rows=1, newest=5, at="x", behind_seconds=1.0)
    assert [*format_sink_notes((behind, never, first))] == [
        "sink out to topic out of kafka_default shows version 3 of 5, 90 s behind; failed: no login",
        "sink out to topic out of kafka_default has sent nothing yet of version 5; not run on this host",
        "sink out to topic out of kafka_default shows no version of 5, 1 change on the way to 5, 1.0 s behind; sending",
    ]


def test_a_sink_of_records_is_told_of_by_epochs() -> None:
    """It has no version of any serving table."""
    known: dict[str, Any] = {"name": "bad", "view": "rejected", "target": "topic bad of kafka_default"}
    way = SinkFacts(**known, when="", version=3, toward=5, rows=2, newest=9, at="x", behind_seconds=1.0)
    never = SinkFacts(**known, when="", newest=9)
    assert [format_shown(each) for each in (way, never)] == [
        "epoch 3 of 9, 2 records on the way to 5, 1.0 s behind",
        "sent nothing yet of epoch 9",
    ]


def test_a_sink_of_redis_is_named_by_its_own_keys() -> None:
    """Not by what stands for the name of the pipeline in a definition; a folder of that name is left alone."""
    assert RedisSink("sales", name="hot").name_target("shop") == "keys {shop.hot} of redis_default"
    assert FileSink("sales", path="/PIPELINE").name_target("shop") == "files below /PIPELINE"


def test_an_audit_of_all_says_which_sinks_it_passes_over(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records are not rows of a view: no reason to look at no other sink; named, it is an error."""
    file = tmp_path / "definitions" / "shop.py"
    both = (
        f'sinks=[FileSink("sales", path="{tmp_path / "files"}", name="lines"), '
        'DeadLetterSink("rejected", topic="bad", name="bad"), KafkaSink('
    )
    text = file.read_text().replace("import Batch,", "import Batch, DeadLetterSink, FileSink,")
    file.write_text(text.replace("sinks=[KafkaSink(", both))
    run(capsys, "run", "shop", "--once")
    code, said = run(capsys, "audit", "shop")
    assert code == 0
    assert "not audited: bad" in said and said.count("3 rows held, 3 to be there") == 2
    assert run(capsys, "audit", "shop", "bad")[0] == BadRange.exit_code


def test_a_sink_that_cannot_be_audited_keeps_no_other_from_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client fails as it likes; where one sink is asked for, its error is what is told."""
    file = tmp_path / "definitions" / "shop.py"
    file.write_text(
        file.read_text().replace("sinks=[", 'sinks=[KafkaSink("sales", topic="first", name="first"), ')
    )
    stores = {"first": Store(), "out": store}
    monkeypatch.setattr("seamline.sinks.targets.KafkaTarget", lambda sink, *_: MemoryTarget(stores[sink.id]))
    run(capsys, "run", "shop", "--once")
    del stores["first"]
    code, said = run(capsys, "audit", "shop")
    assert code == AuditFailed.exit_code
    assert (
        "sink first: it cannot be audited: KeyError: 'first'" in said and "3 rows held, 3 to be there" in said
    )
    with pytest.raises(KeyError):
        run(capsys, "audit", "shop", "first")
