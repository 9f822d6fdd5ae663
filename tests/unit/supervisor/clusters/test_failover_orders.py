"""A failover as people ask for it: one reading of its words, and a process that carries it out for Airflow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.shop import Sale, Shop, opened

from seamline.jobs import failover as job
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import decide_failover, list_failovers
from seamline.model.errors import BadRange, KafkaUnavailable, SetupError
from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval
from seamline.supervisor.clusters import failing_over, failover_process
from seamline.supervisor.clusters.failover_orders import FailoverAction, FailoverOrder

AT = datetime(2026, 1, 5, tzinfo=UTC)
ORDER = FailoverOrder(
    FailoverAction.DECIDE,
    "airflow:ada",
    reason="fire",
    connection="kafka_b",
    by="timestamp",
    margin="2 minutes",
    since="2026-01-05T00:00:00Z",
    lost_from="2026-01-01T00:00:00Z",
    lost_to="2026-01-02T00:00:00Z",
    fewer_partitions=True,
)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop of one sale, and a failover that no start has registered."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1)])
    control = ControlTable.ensure(made.layout)
    lease = control.take("ada", now=datetime.now(UTC))
    closed, begun = {Lane("t", 0): 1}, {Lane("n", 0): 4}
    decided = Failover("kafka_b", "kafka_default", By.OFFSETS, closed, begun, False, None, "", "ada", "", AT)
    decide_failover(control, lease, decided, ())
    control.release(lease)
    return made


def test_an_order_goes_to_another_process_and_is_read_there() -> None:
    """Nothing of it is lost on the way, and all words are meant."""
    assert FailoverOrder.from_json(ORDER.to_json()) == ORDER
    request = ORDER.read()
    assert (request.connection, request.by, request.actor) == ("kafka_b", By.TIMESTAMP, "airflow:ada")
    assert (request.margin, request.since, request.fewer) == (timedelta(minutes=2), AT, True)
    assert request.lost == Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"connection": "", "by": "event_id"}, "connection: a failover needs one"),
        ({"connection": "b", "by": "guess"}, "by: 'guess' is no way"),
        ({"connection": "b", "by": "offsets"}, "is not a JSON object of offsets"),
        ({"connection": "b", "by": "event_id", "lost_from": "2026-01-01"}, "belong together"),
    ],
)
def test_a_wrong_word_is_named(words: dict[str, Any], said: str) -> None:
    """A form's words are checked before there is a run."""
    with pytest.raises(BadRange, match=said):
        FailoverOrder(FailoverAction.DECIDE, "ada", **words).read()


def test_a_process_takes_a_failover_back_and_says_so(shop: Shop) -> None:
    """It is the command's own function; what it is refused with has its kind here, so that a retry knows."""
    lines: list[str] = []
    order = FailoverOrder(FailoverAction.CANCEL, "airflow:ada", "it is back")
    failover_process.run_failover("shop", order, {}, lines.append)
    assert lines == ["shop: the failover to kafka_b is taken back; the next start reads kafka_default."]
    assert list_failovers(shop.layout) == ()
    rows = ControlTable.ensure(shop.layout).table.read().to_pylist()
    assert ("failover taken back", "airflow:ada", "it is back") in [
        (row["state"], row["actor"], row["reason"]) for row in rows
    ]
    with pytest.raises(BadRange, match="no failover that can be taken back") as refused:
        failover_process.run_failover("shop", order, {}, lines.append)
    assert "fail back with another failover" in refused.value.hint


def test_the_job_plans_and_decides_as_the_command_does(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan decides nothing."""
    asked: list[tuple[str, object]] = []

    def keep(what: str) -> Any:
        def call(pipeline: object, layout: object, request: object, env: Mapping[str, str]) -> object:
            asked.append((what, request))
            return SimpleNamespace(lines=(f"{what}: the plan",))

        return call

    monkeypatch.setattr(failing_over, "draft_failover", keep("drafted"))
    monkeypatch.setattr(failing_over, "fail_over", keep("decided"))
    planning = FailoverOrder(**{**vars(ORDER), "action": FailoverAction.PLAN})
    for order in (planning, ORDER):
        assert job.main(["--pipeline=shop", f"--order={order.to_json()}"]) == 0
    assert capsys.readouterr().out == "drafted: the plan\ndecided: the plan\n"
    assert asked == [("drafted", ORDER.read()), ("decided", ORDER.read())]


def test_an_end_that_is_no_error_of_ours_is_told_too() -> None:
    """A process may be killed."""
    assert isinstance(failover_process.find_error(KafkaUnavailable.exit_code, "away"), KafkaUnavailable)
    killed = failover_process.find_error(-9, "")
    assert isinstance(killed, SetupError) and "exit code -9" in killed.message
