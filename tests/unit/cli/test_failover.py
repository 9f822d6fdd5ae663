"""The command that fails a stream over: what it refuses to read, and that nothing is written without a plan."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.shop import Sale, Shop, opened

from seamline.cli import main
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import BadRange, NotFound, TopicMissing
from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.failover_plan import FailoverRequest
from seamline.supervisor import outside
from seamline.supervisor.clusters import failing_over

FAILOVER = Failover(
    "kafka_b", "kafka_default", By.TIMESTAMP, {Lane("t", 0): 1}, {Lane("n", 0): 4}, False, None, "exact", "ada", "",
    datetime(2026, 1, 5, tzinfo=UTC),
)  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop of one sale."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1)])
    return made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, FailoverRequest]]:
    """Keep what is drafted and decided, in the place of two clusters."""
    found: list[tuple[str, FailoverRequest]] = []

    def keep(what: str) -> Any:
        def call(pipeline: object, layout: object, request: FailoverRequest, env: object) -> object:
            found.append((what, request))
            return SimpleNamespace(lines=("the plan",))

        return call

    monkeypatch.setattr(failing_over, "draft_failover", keep("drafted"))
    monkeypatch.setattr(failing_over, "fail_over", keep("decided"))
    return found


def fail_over(*words: str) -> int:
    """Run the command."""
    return main(["stream", "failover", "shop", *words])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--to", "b"], 2, "--to and --by are required"),
        (["--to", "b", "--by", "nowhere.json"], NotFound.exit_code, "There is no file nowhere.json"),
        (
            ["--to", "b", "--by", "event_id", "--lost-from", "2026-01-01"],
            BadRange.exit_code,
            "belong together",
        ),
        (["--to", "b", "--by", "event_id", "--margin", "soon"], 3, "soon"),
        (["--cancel"], BadRange.exit_code, "no failover that can be taken back"),
        (["--cancel", "--dry-run"], 2, "takes --reason alone"),
        (["--to", "b", "--by", "x" * 5000], BadRange.exit_code, "File name too long"),
        (["--to", "b", "--by", "o.json", "--since", "2026-01-01"], BadRange.exit_code, "the other ways"),
        (["--to", "b", "--by", "event_id", "--since", ""], BadRange.exit_code, "'' is not a date"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    """Nothing has been asked of a cluster by then."""
    assert fail_over(*words) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff\xfe{", "it is no text in UTF-8"),
        (b"[" * 100_000, "is not a JSON object of offsets"),
        (b'{"sales": {"0": 1, "0": 2}}', "each of them once"),
        (b'{"sales": {"00": 1}}', "is not a JSON object of offsets"),
    ],
)
def test_a_file_that_is_none_of_offsets_is_refused_in_few_words(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes, said: str
) -> None:
    """Of a partition that is there twice one offset would be passed over, and nobody would know which."""
    file = tmp_path / "offsets.json"
    file.write_bytes(text)
    assert fail_over("--to", "b", "--by", str(file)) == BadRange.exit_code
    told = capsys.readouterr().err
    assert said in told and len(told) < 1000


def test_a_dry_run_decides_nothing(
    shop: Shop, asked: list[tuple[str, FailoverRequest]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan is the same; a file of offsets is read as replication tools write it."""
    file = tmp_path / "offsets.json"
    file.write_text("\ufeff" + json.dumps({"sales": {"0": 17}}))
    assert (
        fail_over(
            "--to",
            "b",
            "--by",
            str(file),
            "--dry-run",
            "--lost-from",
            "2026-01-01",
            "--lost-to",
            "2026-01-02",
        )
        == 0
    )
    assert capsys.readouterr().out == "the plan\nIt was a dry run.\n"
    [(what, request)] = asked
    assert (what, request.by, request.offsets) == ("drafted", By.OFFSETS, {("sales", 0): 17})
    assert str(request.lost) == "2026-01-01T00:00:00Z/2026-01-02T00:00:00Z"
    assert fail_over("--to", "b", "--by", "event_id", "--nothing-missing", "--reason", "fire") == 0
    what, request = asked[-1]
    assert (what, request.by, request.whole, request.reason) == ("decided", By.EVENT_ID, True, "fire")
    assert "the next start reads b" in capsys.readouterr().out


def test_a_restart_runs_the_stream_again_whatever_has_come_of_it(
    shop: Shop, asked: list[tuple[str, FailoverRequest]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for the failover alone; what is refused at once does not even stop it."""
    stopped: list[str] = []
    monkeypatch.setattr(outside, "stop_stream", lambda layout, **_: stopped.append(layout.pipeline))
    control = ControlTable.ensure(shop.layout)
    assert fail_over("--to", "b", "--by", "timestamp", "--restart") == 0
    assert ([what for what, _ in asked], stopped) == (["drafted", "decided"], ["shop"])
    assert control.read().desired is Desired.RUNNING and control.read().restarts == 1

    def refuse(*_: object) -> object:
        raise TopicMissing("Topic 'sales' does not exist on b.")

    monkeypatch.setattr(failing_over, "fail_over", refuse)
    assert fail_over("--to", "b", "--by", "timestamp", "--restart") == TopicMissing.exit_code
    assert control.read().restarts == 2
    monkeypatch.setattr(failing_over, "draft_failover", refuse)
    assert fail_over("--to", "b", "--by", "timestamp", "--restart") == TopicMissing.exit_code
    assert (stopped, control.read().restarts) == (["shop", "shop"], 2)


def test_status_and_doctor_say_which_connection_is_in_force(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The definition says another one, and people look there."""
    from seamline.cli.context import load_configured_catalog
    from seamline.cli.doctor import check_failovers
    from seamline.lake.tables.decided import decide_failover

    assert not [*check_failovers(load_configured_catalog())]
    control = ControlTable.ensure(shop.layout)
    lease = control.take("ada", now=datetime.now(UTC))
    decide_failover(control, lease, FAILOVER, ())
    control.release(lease)
    assert main(["status", "shop"]) == 0
    said = (
        "connection kafka_b is in force since the failover of 2026-01-05T00:00:00Z from kafka_default by ada"
    )
    assert f"{said}; the next start begins it" in capsys.readouterr().out
    [finding] = check_failovers(load_configured_catalog())
    assert "kafka_b, by a failover; the definition has kafka_default" in str(finding)
