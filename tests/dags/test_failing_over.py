"""A failover asked for in Airflow: in the form of the stream's DAG, and on the page of the stream, by its plan."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from tests.unit.shop import Shop, opened

from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import BadRange
from seamline.orchestration import reconciling
from seamline.orchestration.orders import FORM, read_order
from seamline.supervisor.clusters import failover_drafts, failover_process
from seamline.supervisor.clusters.failover_orders import FailoverAction, FailoverOrder
from seamline.web import actions

EMPTY = {name: param.value for name, param in FORM.items()}
ASKED = {"connection": "kafka_b", "by": "event_id", "reason": "fire"}


def test_every_field_of_the_form_is_meant() -> None:
    """The same order as by the command line."""
    given = {
        **ASKED,
        "action": "failover",
        "margin": "1 minute",
        "since": "2026-01-03T01:00:00+01:00",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-02T00:00:00Z",
        "fewer_partitions": True,
    }
    assert read_order({**EMPTY, **given}, "airflow:ada") == FailoverOrder(
        FailoverAction.DECIDE,
        "airflow:ada",
        reason="fire",
        connection="kafka_b",
        by="event_id",
        margin="1 minute",
        since="2026-01-03T00:00:00Z",
        lost_from="2026-01-01T00:00:00Z",
        lost_to="2026-01-02T00:00:00Z",
        fewer_partitions=True,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"by": "event_id"}, "connection"),
        ({**ASKED, "by": "guess"}, "by"),
        ({**ASKED, "by": "offsets", "offsets": "[]"}, "is not a JSON object of offsets"),
        ({**ASKED, "since": "2026-01-03T00:00:00"}, "since: .* has no zone"),
        ({**ASKED, "nothing_missing": "yes"}, "nothing_missing"),
        ({**ASKED, "Margin": "1 minute"}, "Margin: there is no such field"),
    ],
)
def test_a_wrong_field_is_named(given: dict[str, object], said: str) -> None:
    """REST's conf is not checked by a form."""
    with pytest.raises(BadRange, match=said):
        read_order({**EMPTY, "action": "failover", **given}, "airflow")


def test_a_run_fails_the_stream_over_and_starts_nothing(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process gets both logins: that of the cluster in force, and that of the other one."""
    made = opened(tmp_path, monkeypatch)
    ControlTable.ensure(made.layout).want(Desired.RUNNING, actor="ada", reason="", now=datetime.now(UTC))
    run = SimpleNamespace(
        run_type=SimpleNamespace(value="manual"), triggering_user_name="ada", run_after=datetime.now(UTC)
    )
    context = {
        "dag_run": run,
        "params": {**EMPTY, **ASKED, "action": "failover"},
        "outlet_events": {},
        "task": SimpleNamespace(),
    }
    monkeypatch.setattr(reconciling, "get_current_context", lambda: context)
    monkeypatch.setattr(reconciling, "connections_env_if_any", lambda names: dict.fromkeys(names, "{}"))
    ran: list[tuple[object, ...]] = []
    monkeypatch.setattr(failover_process, "run_failover", lambda *asked: ran.append(asked[:3]))
    with pytest.raises(AirflowSkipException, match="failover: done"):
        reconciling.reconcile("shop", "kafka_default", None)  # type: ignore[arg-type]
    order = FailoverOrder(FailoverAction.DECIDE, "airflow:ada", "fire", "kafka_b", "event_id")
    assert ran == [("shop", order, {"kafka_default": "{}", "kafka_b": "{}"})]


@pytest.fixture
def clusters(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """What is drafted and triggered, in the place of two clusters and of Airflow's own application."""
    found: list[tuple[str, object]] = []

    def draft(pipeline: object, layout: object, request: Any, env: object) -> object:
        found.append(("draft", request.connection))
        return SimpleNamespace(lines=("left: sales/0", "begun: sales/0"))

    def trigger(dag_id: str, conf: object) -> str:
        found.append((dag_id, conf))
        return "manual__7"

    monkeypatch.setattr(failover_drafts, "draft_failover", draft)
    monkeypatch.setattr(actions, "connection_env_if_any", lambda name: {})
    monkeypatch.setattr(actions, "kafka_env", lambda compiled: {})
    monkeypatch.setattr(actions.InsideAirflow, "of", lambda request: SimpleNamespace(trigger=trigger))
    return found


def test_the_page_plans_first_and_then_starts_a_run(
    database: None, client: Any, shop: Shop, clusters: list[Any]
) -> None:
    """A plan changes nothing; a decision is refused before there is a run if the stream should run."""
    asked = {**ASKED, "action": "plan-failover"}
    answer = client.post("/api/v1/failovers/shop", json=asked)
    assert (answer.status_code, answer.json()) == (202, {"plan": ["left: sales/0", "begun: sales/0"]})
    assert clusters == [("draft", "kafka_b")]
    control = ControlTable.ensure(shop.layout)
    control.want(Desired.RUNNING, actor="ada", reason="", now=datetime.now(UTC))
    refused = client.post("/api/v1/failovers/shop", json={**asked, "action": "failover"})
    assert refused.status_code == 400 and "is to be running" in refused.json()["message"]
    control.want(Desired.STOPPED, actor="ada", reason="", now=datetime.now(UTC))
    clusters.clear()
    answer = client.post("/api/v1/failovers/shop", json={**asked, "action": "failover"})
    assert answer.json()["run_id"] == "manual__7" and answer.json()["plan"]
    [_, (dag, conf)] = clusters
    order = FailoverOrder(FailoverAction.DECIDE, "airflow:ada", "fire", "kafka_b", "event_id")
    assert (dag, read_order({**EMPTY, **conf}, "airflow:ada")) == ("shop__stream", order)


def test_the_page_offers_what_was_planned_alone(client: Any) -> None:
    """The button that decides waits for a plan."""
    text = client.get("/pipelines/shop/stream").text
    form = text[text.index("Fail over to another cluster") :]
    assert 'name="action" value="plan-failover"' in form
    assert 'value="failover" data-after="plan-failover" disabled' in form
