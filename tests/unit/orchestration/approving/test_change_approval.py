"""In Airflow: what changes much waits among the required actions, and is published in the name of who approved it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators import hitl
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput
from tests.unit.lake.publish.test_approved_changes import compared, keep, limited
from tests.unit.lake.publish.test_publish import DAYS, SHOP, VIEW, offer, served
from tests.unit.shop import DEFINITION

from seamline.lake.publish import publishing
from seamline.lake.publish.asked_approvals import read_asked
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.orchestration import tasks
from seamline.orchestration.approving import approved_publish
from seamline.orchestration.dags import build_dags
from seamline.orchestration.intervals import untold

SERVING = Asset(name="shop/serving", uri="x-seamline://shop/serving")
INTERVALS = Asset(name="shop/intervals", uri="x-seamline://shop/intervals")


class Task:
    """A task instance that hands XComs on."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.told[key] = value

    def xcom_pull(self, task_ids: str, key: str = "") -> Any:
        return self.told.get(key or task_ids)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Layout, Task]:
    """Two days were built again: one changes little, the other much."""
    layout, ti = Layout(tmp_path, "shop"), Task()
    monkeypatch.setattr(publishing, "refresh_serving", lambda *_: None)
    offer(layout, "a")
    publishing.publish_run(SHOP, layout, "a")
    offer(layout, "b", cut=9, expected="g-a")
    keep(layout, compared(DAYS[0], "g-b", 0.0), compared(DAYS[1], "g-b", 0.5))
    events: dict[Any, Any] = {SERVING: SimpleNamespace(extra={})}
    events[INTERVALS] = SimpleNamespace(extra={}, add_partitions=lambda *_: None)
    context = {
        "run_id": "b",
        "ti": ti,
        "dag_run": SimpleNamespace(run_type=SimpleNamespace(value="scheduled"), dag_id="shop__batch"),
        "task": SimpleNamespace(),
        "outlet_events": events,
    }
    for module in (tasks, approved_publish):
        monkeypatch.setattr(module, "get_current_context", lambda: context)
        monkeypatch.setattr(module, "open_compiled_pipeline", lambda _: (limited(0.05), layout))
    monkeypatch.setattr(tasks, "announce", lambda *_: None)
    hear(monkeypatch)
    return layout, ti


def hear(monkeypatch: pytest.MonkeyPatch, *done: str) -> None:
    """Let Airflow have heard of events of some tasks of the run."""
    events = [
        SimpleNamespace(source_dag_id="shop__batch", source_run_id="b", source_task_id=task) for task in done
    ]
    found = SimpleNamespace(after=lambda _: SimpleNamespace(limit=lambda _: events))
    monkeypatch.setattr(untold, "InletEventsAccessor", lambda **_: found)


def test_a_small_change_is_published_and_a_large_one_is_asked_about(
    run: tuple[Layout, Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who decides sees what changes; the decision is recorded with a name."""
    layout, ti = run
    tasks.publish("shop", SERVING, INTERVALS)
    assert served(layout) == ["g-b", "g-a"] and ti.told["waits"] is True
    for said in (DAYS[1], "changes answers by 50.0%", "n: 1 changed, at most +50.00%"):
        assert said in ti.told["changes"]
    ti.told["approve_change"] = {"responded_by_user": {"id": "7", "name": "ann"}}
    approved_publish.publish_approved("shop", SERVING, INTERVALS)
    assert served(layout) == ["g-b", "g-b"]
    assert ManifestTable.ensure(layout).read().published[VIEW.id, DAYS[1]].actor == "airflow:ann"
    hear(monkeypatch, "publish", "publish_approved")
    with pytest.raises(AirflowSkipException, match="published already"):
        approved_publish.publish_approved("shop", SERVING, INTERVALS)


def test_each_task_tells_of_what_it_has_published_and_died_before_it_could(
    run: tuple[Layout, Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers hear of an approved interval too, and of each once, whichever task is cleared later."""
    _, ti = run
    told: list[list[str]] = []
    for module in (tasks, approved_publish):
        monkeypatch.setattr(
            module, "announce_publication", lambda *given: told.append([each.interval for each in given[3]])
        )
    tasks.publish("shop", SERVING, INTERVALS)
    hear(monkeypatch, "publish")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "refresh_serving", killed)
        with pytest.raises(KeyboardInterrupt):
            approved_publish.publish_approved("shop", SERVING, INTERVALS)
    ti.told["waits"] = True
    approved_publish.publish_approved("shop", SERVING, INTERVALS)
    assert told == [[DAYS[0]], [DAYS[1]]]
    hear(monkeypatch, "publish_approved")
    tasks.publish("shop", SERVING, INTERVALS)
    assert told[2:] == [[DAYS[0]]]


def test_what_is_asked_is_noted_once_it_is(
    run: tuple[Layout, Task], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that dies at `publish`, or before the question is among the required actions, has asked nobody."""
    layout, _ = run
    tasks.publish("shop", SERVING, INTERVALS)
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path))
    folder = tmp_path / "pipelines"
    folder.mkdir()
    limited = 'start="2013-01-01", approve_change=0.05'
    (folder / "shop.py").write_text(DEFINITION.replace('start="2013-01-01"', limited))
    asking: Any = build_dags(folder, tmp_path / "home")["shop__batch"].get_task("approve_change")
    at: list[bool] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **_: at.append(bool(read_asked(layout, "b"))))
    asking.needed = False
    asking.execute({"run_id": "b"})
    assert (at, read_asked(layout, "b")) == ([], set())
    asking.needed = True
    with pytest.raises(TaskAwaitingInput):
        asking.execute({"run_id": "b", "task_instance": SimpleNamespace(id="7")})
    assert (at, read_asked(layout, "b")) == ([False], {"g-b"})


def test_where_nothing_waits_nobody_is_asked(run: tuple[Layout, Task]) -> None:
    """The task after it is skipped, and so is the event."""
    layout, ti = run
    keep(layout, compared(DAYS[1], "g-b", 0.0))
    tasks.publish("shop", SERVING, INTERVALS)
    assert served(layout) == ["g-b", "g-b"] and ti.told["waits"] is False
    with pytest.raises(AirflowSkipException, match="nothing waited"):
        approved_publish.publish_approved("shop", SERVING, INTERVALS)


def test_where_everything_waits_the_task_is_skipped_and_not_failed(run: tuple[Layout, Task]) -> None:
    """A failure would be tried again, and would wake people who can do nothing."""
    layout, ti = run
    keep(layout, compared(DAYS[0], "g-b", 0.7))
    with pytest.raises(AirflowSkipException, match="waits for approval"):
        tasks.publish("shop", SERVING, INTERVALS)
    assert served(layout) == ["g-a", "g-a"] and ti.told["waits"] is True


@pytest.mark.parametrize("answer", [None, {}, {"responded_by_user": None}])
def test_who_approved_may_be_unknown(answer: Any) -> None:
    """Airflow without users names nobody."""
    assert approved_publish.find_approver(answer) == "airflow:unknown"


def test_a_definition_with_a_limit_has_two_tasks_more(tmp_path: Path) -> None:
    """Of which the first waits after what need not wait is published; a publish that failed fails the run."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    file = folder / "shop.py"
    for text, more in (("", []), (", approve_change=0.05", ["approve_change", "publish_approved"])):
        file.write_text(DEFINITION.replace('start="2013-01-01"', f'start="2013-01-01"{text}'))
        dag = build_dags(folder, tmp_path / f"home{len(more)}")["shop__batch"]
        assert {*dag.task_ids} == {"plan", "build", "certify", "publish", "all_certified", *more}
    asked = dag.get_task("approve_change")
    assert asked.downstream_task_ids == {"publish_approved"}


@pytest.mark.parametrize(
    ("build", "publish", "runs"),
    [("success", "success", True), ("success", "skipped", True), ("skipped", "skipped", False)],
)
def test_a_run_that_builds_nothing_has_nothing_to_ask(
    tmp_path: Path, build: str, publish: str, runs: bool
) -> None:
    """Its publish is skipped before it says what waits: a task that reads that would fail each such run."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    limited = 'start="2013-01-01", approve_change=0.05'
    (folder / "shop.py").write_text(DEFINITION.replace('start="2013-01-01"', limited))
    asked = build_dags(folder, tmp_path / "home")["shop__batch"].get_task("approve_change")
    states = {"build": build, "publish": publish}
    assert asked.trigger_rule == "none_failed_min_one_success"
    assert any(states[each] == "success" for each in asked.upstream_task_ids) is runs
