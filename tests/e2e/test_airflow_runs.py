"""Ways of asking for work on a real Airflow, over a warehouse to which a stream appends meanwhile."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page
from tests.e2e.reader import opened_browser, reader
from tests.e2e.teams.other_team import DAY, HOURS, NEXT, REPORT, connect, links_of, write_dags, xcom_of
from tests.e2e.world import DAYS, ROOT, Resident, World
from tests.ports import free_ports

from seamline.client import Client
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.local.airflow import AirflowStandalone
from seamline.local.flights import Span, read_flights
from seamline.model.errors import SeamlineError
from seamline.model.time.intervals import parse_moment
from seamline.orchestration import airflow_client
from seamline.orchestration.airflow_api import AirflowApi
from seamline.orchestration.airflow_client import quote_path_segment
from seamline.orchestration.backfills import ENDED

SHOWN = "pipelines/flights"
PAGES = (
    "",
    "query?q=SELECT+window_start,carrier,flights+FROM+flights.delay_by_carrier",
    f"{SHOWN}/graph",
    f"{SHOWN}/timeline",
    f"{SHOWN}/completeness?interval={DAYS[0]}&view=delay_by_carrier",
    f"{SHOWN}/differences",
    f"{SHOWN}/views",
    f"{SHOWN}/views/delay_by_carrier",
    *(f"{SHOWN}/views/delay_by_carrier?draw={each}&scale=log" for each in ("heat", "small", "compared")),
    f"{SHOWN}/stream",
    f"{SHOWN}/sinks",
    f"{SHOWN}/lookups",
    f"{SHOWN}/counts",
    f"{SHOWN}/questions",
    f"{SHOWN}/plan",
    f"{SHOWN}/imports",
    f"{SHOWN}/audits",
)
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "timezone_id": "America/New_York"},
}
BATCH, STREAM, UPKEEP = "flights__batch", "flights__stream", "flights__upkeep"
WITHIN = 600.0
PREFIX = "/data/airflow"
"""As behind a proxy that serves other things too: pages, API and the tasks' own server are all below it."""
SELDOM = {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300", "SEAMLINE_RECONCILE_SECONDS": "900"}
"""No definition changes meanwhile, and no stream is to be started: each look takes four processes."""
PAINTED = "document.querySelector('iframe').contentWindow.performance.getEntriesByType('paint').length > 0"
"""Whether a frame of the page is painted: what is laid out may wait for its style sheet."""
LIMIT = 0.5
"""What a rebuild may change unasked, as a share: late flights are in the answer before they are built."""
TEAM = ("wait", "rebuild", "ask")
TEAM_LINKS = [
    "ask Interval",
    "rebuild Certificates",
    "rebuild Interval",
    "rebuild Run",
    "wait Certificates",
    "wait Driver log",
    "wait Interval",
]
CANARY = "canary-91c3e7"
"""A password, of a broker that is not there: it may stand nowhere that Airflow or we write."""


class Airflow:
    """A standalone Airflow whose batch DAG builds the world's days with a resident driver."""

    def __init__(self, world: World, driver: Resident) -> None:
        whole = 'batch=Batch(interval="1 day", start="2013-01-01"'
        declared = world.definition.read_text()
        assert whole in declared
        world.definition.write_text(declared.replace(whole, f"{whole}, approve_change={LIMIT}"))
        kafka = {"bootstrap.servers": "127.0.0.1:9", "sasl.username": "reader", "sasl.password": CANARY}
        kafka |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        kafka |= {"sasl.oauthbearer.client.secret": CANARY, "ssl.key.password": CANARY}
        settings = {
            **world.settings,
            **SELDOM,
            "AIRFLOW__CORE__DAGS_FOLDER": str(
                write_dags(world.home / "dags", ROOT / "dags" / "pipelines.py")
            ),
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW_CONN_SPARK_DEFAULT": driver.connection,
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps({"conn_type": "kafka", "extra": kafka}),
        }
        users = {"reader": "viewer", "operator": "user"}
        self.standalone = AirflowStandalone(
            world.home / "airflow", free_ports(3), root=ROOT, env=settings, users=users, prefix=PREFIX
        )

    @property
    def api(self) -> AirflowApi:
        """Its REST API."""
        return self.standalone.api

    def backfill(self, behaviour: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Ask for the two days again by Airflow's own command."""
        days = ("--from-date", "2013-01-01", "--to-date", "2013-01-02", "--reprocess-behavior", behaviour)
        return self.standalone.backfill(BATCH, *days, *words)

    def runs(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the runs of a kind by the start of their interval."""
        return {str(each["data_interval_start"]): each for each in self.api.runs(BATCH, kind)}

    def ended(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the runs of a kind once there are any and all have ended."""
        runs = self.runs(kind)
        return runs if runs and all(each["state"] in ENDED for each in runs.values()) else {}

    def is_closed(self) -> bool:
        """Return whether no backfill is active; close one whose runs have ended, which Airflow does twice a minute.

        Until another backfill takes its runs, Airflow starts none of them again.
        """
        api = self.api
        active = api.active_backfills(BATCH)
        if active and self.ended("backfill"):
            # SQLite lets go of a write that one of the scheduler's has overtaken, and Airflow may have been first.
            with suppress(SeamlineError):
                api.call("PUT", f"/backfills/{active[0]}/cancel")
            active = api.active_backfills(BATCH)
        return not active


def eventually(look: Callable[[], Any], *, meanwhile: Callable[[], None] = lambda: None) -> Any:
    """Wait for something and give it."""
    until = time.monotonic() + WITHIN
    while not (found := look()):
        meanwhile()
        assert time.monotonic() < until, "it did not come about"
        time.sleep(1.0)
    return found


def answered(page: Page) -> str:
    """Return what a form was answered, a refusal too."""
    said = page.locator("output.good, output.bad")
    said.wait_for(timeout=1000 * WITHIN)
    return said.inner_text()


@pytest.fixture(scope="module")
def airflow(world: World, driver: Resident) -> Iterator[Airflow]:
    """Start it, with the batch DAG unpaused."""
    made = Airflow(world, driver)
    made.standalone.start()
    with pytest.MonkeyPatch.context() as patched:
        # A write of its API waits for the scheduler's, and both for the other suites.
        patched.setattr(airflow_client, "TIMEOUT", 4 * airflow_client.TIMEOUT)
        try:
            made.api.unpause(BATCH)
            yield made
        finally:
            made.standalone.stop()


@pytest.fixture(scope="module")
def scheduled(airflow: Airflow) -> Mapping[str, Any]:
    """Have the scheduled run behind us, which comes by itself; at midnight there comes another."""
    runs = eventually(lambda: airflow.ended("scheduled"))
    return runs[min(runs)]


@contextmanager
def appending(world: World) -> Iterator[None]:
    """Have the stream hold late flights of both days, one by one, for as long as the block runs."""
    stop = threading.Event()

    def stream() -> None:
        while not stop.wait(4.0):
            world.late(DAYS[world.sent % 2])

    thread = threading.Thread(target=stream)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def require_all_counted(world: World) -> None:
    """Compare the merged answer with what the stream had held before and after it was read."""
    before = world.held
    counted = sum(row["flights"] for row in world.answer())
    assert before <= counted <= world.sent


def test_a_scheduled_run_builds_what_is_dirty(world: World, scheduled: Mapping[str, Any]) -> None:
    """Its own interval has no flights; the days that nobody has built yet are taken with it."""
    assert scheduled["state"] == "success"
    assert sorted(world.published()) == DAYS


def test_a_backfill_builds_exactly_its_days_while_the_stream_appends_to_them(
    world: World, airflow: Airflow, scheduled: Mapping[str, Any]
) -> None:
    """Each answer on the way has every flight once, whichever generation it is of."""
    before = world.published()
    with appending(world):
        asked = airflow.backfill("none")
        assert asked.returncode == 0, asked.stderr
        runs = eventually(
            lambda: len(found := airflow.ended("backfill")) == 2 and found,
            meanwhile=lambda: require_all_counted(world),
        )
    assert [runs[day]["state"] for day in DAYS] == ["success"] * 2
    now = world.published()
    assert all(now[day] != before[day] for day in DAYS)
    require_all_counted(world)


def test_a_cleared_task_judges_again_and_publishes_nothing_twice(world: World, airflow: Airflow) -> None:
    """Clear of `certify` with what is downstream, as the UI does; of a closed backfill Airflow would start no run."""
    before, run = world.published(), airflow.runs("backfill")[DAYS[1]]["dag_run_id"]
    body = {
        "dry_run": False,
        "task_ids": ["certify"],
        "dag_run_id": run,
        "only_failed": False,
        "include_downstream": True,
    }
    airflow.api.call("POST", f"/dags/{BATCH}/clearTaskInstances", body)
    states = eventually(lambda: airflow.ended("backfill") and airflow.api.task_states(BATCH, run))
    assert (states["certify"], states["publish"]) == ("success", "skipped")
    assert world.published() == before


def test_the_report_of_a_run_is_behind_the_login(airflow: Airflow, scheduled: Mapping[str, Any]) -> None:
    """It is what the tab on the run's page shows; nobody reads it who may not read the run."""
    run = quote_path_segment(scheduled["dag_run_id"])
    address = f"{airflow.api.url}/seamline/reports/{BATCH}/{run}/index.html"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(address, timeout=30)
    assert refused.value.code == 401
    refused.value.close()
    api = airflow.api
    api.log_in()
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {api.token}"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        page = answer.read().decode()
    assert "4 certificates, 0 not green." in page
    plugins = api.call("GET", "/plugins")["plugins"]
    views = [each for plugin in plugins if plugin["name"] == "seamline" for each in plugin["external_views"]]
    assert [each["destination"] for each in views] == ["nav", "dag", "dag_run"]
    view = views[-1]
    assert view["href"].format(DAG_ID=BATCH, RUN_ID=run) == urlsplit(address).path


ROUTES = (
    "views",
    "views/flights/delay_by_carrier?limit=2",
    "explain/flights/delay_by_carrier?key.carrier=UA&window=2013-01-01T15:00:00Z",
    "completeness/flights",
    "comparisons/flights/delay_by_carrier",
    "audits/flights",
    "streams/flights?broker=false",
)


def test_the_api_is_behind_the_login_and_answers_what_a_reader_is_told(
    world: World, airflow: Airflow, scheduled: Mapping[str, Any]
) -> None:
    """Nothing is anonymous, and nothing is another answer by HTTP."""
    assert scheduled["state"] == "success"
    api = airflow.api
    api.log_in()
    found = {}
    for route in ROUTES:
        assert asked(f"{api.url}/seamline/api/v1/{route}", "")[0] == 401, route
        # Airflow's own word for a token that is none.
        assert asked(f"{api.url}/seamline/api/v1/{route}", "Bearer forged")[0] == 403, route
        code, body = asked(f"{api.url}/seamline/api/v1/{route}", f"Bearer {api.token}")
        assert code == 200, f"{route}: {body}"
        found[route.partition("/")[0].partition("?")[0]] = json.loads(body)
    assert found["explain"]["proven"]
    # The stream may have appended to a day since it was built.
    assert {each["status"] for each in found["completeness"]["cells"]} <= {"certified", "dirty"}
    assert {each["interval"] for each in found["completeness"]["cells"]} == set(DAYS)
    assert [each["alarm"] for each in found["comparisons"]["comparisons"] if each["alarm"]] == []
    assert len(found["comparisons"]["comparisons"]) >= len(DAYS)
    code, body = asked(
        f"{api.url}/seamline/api/v1/views/flights/delay_by_carrier?limit=10000", f"Bearer {api.token}"
    )
    read = Client(api.url, user="reader", password=api.password).read("flights.delay_by_carrier")
    told = json.loads(body)["rows"]
    assert read["flights"].to_pylist() == [row["flights"] for row in told]
    assert (code, len(told)) == (200, len(world.answer()))
    assert sum(row["flights"] for row in told) == sum(row["flights"] for row in world.answer())


def asked(address: str, token: str) -> tuple[int, str]:
    """Ask; give the code and the body, whatever they are."""
    request = urllib.request.Request(address, headers={"Authorization": token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.faults
def test_a_backfill_of_finished_days_leaves_them_alone_if_told_so(world: World, airflow: Airflow) -> None:
    """Reprocess behaviour none, Airflow's default: what has a run is not run again."""
    before, runs = world.published(), airflow.runs("backfill")
    airflow.backfill("none")
    eventually(lambda: not airflow.api.active_backfills(BATCH))
    assert {day: each["run_after"] for day, each in airflow.runs("backfill").items()} == {
        day: each["run_after"] for day, each in runs.items()
    }
    assert world.published() == before


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Have a browser open."""
    with opened_browser() as found:
        yield found


@pytest.mark.parametrize(
    "look", ["light", *(pytest.param(each, marks=pytest.mark.faults) for each in ("dark", "phone"))]
)
def test_every_page_opens(
    airflow: Airflow, browser: Browser, scheduled: Mapping[str, Any], look: str
) -> None:
    """In light and dark and as narrow as a phone, without a word on the console or a barrier."""
    assert scheduled["state"] == "success"
    with reader(browser, airflow.standalone, "reader", **LOOKS[look]) as pages:
        for path in PAGES:
            name = re.sub(r"\?(?!draw=).*|&.*", "", path)
            pages.open(path).shot(f"{look}-{name or 'overview'}")
            assert pages.barriers() == [], path
        assert pages.complaints == []


def test_pages_show_what_the_tables_hold(
    world: World, airflow: Airflow, browser: Browser, scheduled: Mapping[str, Any]
) -> None:
    """The charts are drawn, a number is explained, and an interval leads to the report of its run."""
    assert scheduled["state"] == "success"
    with reader(browser, airflow.standalone, "reader") as pages:
        rows = world.answer()
        page = pages.open(f"{SHOWN}/views/delay_by_carrier?start=2013-01-01&end=2013-01-03").page
        assert f"{len(rows)} rows" in page.locator("h2").first.inner_text()
        assert page.locator(".chart .main-svg").count() >= 2
        drawn = page.evaluate("[...document.querySelectorAll('.chart')].map(c => c.data.flatMap(t => t.y))")
        assert sum(drawn[1]) == sum(row["flights"] for row in rows)
        page.get_by_role("link", name="explain").first.click()
        page.get_by_text("Everything adds up.").wait_for()
        pages.open(f"{SHOWN}/views/delay_by_carrier?key.carrier=UA").shot("view", whole=False)
        page = pages.open(f"{SHOWN}/views/delay_by_carrier?draw=heat&start=2013-01-01&end=2013-01-03").page
        page.locator("td[data-explain*='window=']").first.focus()
        page.locator("[data-readout] li", has_text="published").first.wait_for()
        page.keyboard.press("Enter")
        page.get_by_text("Everything adds up.").wait_for()
        page = pages.open("query").page
        asked = page.get_by_label("SQL")
        asked.press_sequentially("SELECT sum(flights) AS n FROM delay_by_c")
        page.get_by_role("option", name="flights.delay_by_carrier").wait_for()
        asked.press("Tab")
        asked.press("Control+Enter")
        assert (
            f"{sum(row['flights'] for row in world.answer()):,}" in page.locator("#rows tbody").inner_text()
        )
        page = pages.open(f"{SHOWN}/completeness").page
        page.get_by_label(re.compile(f"delay_by_carrier {DAYS[0]}: (certified|dirty)")).click()
        page.get_by_text("What a rebuild would do").wait_for()
        assert page.get_by_role("button", name="Rebuild").count() == 0
        page.get_by_role("link", name="The report of its run").click()
        page.wait_for_url(re.compile("/reports/"))
        page.get_by_text("certificates").first.wait_for()


def test_the_pages_stand_inside_airflow_s_own(
    airflow: Airflow, browser: Browser, scheduled: Mapping[str, Any]
) -> None:
    """In its navigation and on a DAG; a link of theirs to Airflow moves Airflow itself."""
    with reader(browser, airflow.standalone, "reader") as pages:
        page = pages.page
        page.goto(f"{airflow.api.url}/plugin/seamline")
        frame = page.frame_locator("iframe")
        frame.get_by_role("link", name="flights", exact=True).wait_for()
        page.wait_for_function(PAINTED)
        pages.shot("inside-airflow", whole=False)
        page.goto(f"{airflow.api.url}/dags/{BATCH}/plugin/seamline_dag")
        frame.get_by_role("heading", name="Completeness of flights").wait_for()
        page.wait_for_function(PAINTED)
        pages.shot("inside-airflow-dag", whole=False)
        frame.locator("a[data-airflow]").first.click()
        page.wait_for_url(re.compile(f"/dags/{BATCH}/runs/"))


@pytest.mark.faults
def test_who_may_operate_rebuilds_days_and_stops_a_stream(
    world: World, airflow: Airflow, browser: Browser, scheduled: Mapping[str, Any]
) -> None:
    """By the buttons of the pages; the run is Airflow's, and the order is kept with who gave it."""
    before = world.published()
    with reader(browser, airflow.standalone, "operator") as pages:
        page = pages.open(f"{SHOWN}/completeness?interval={DAYS[1]}&view=delay_by_carrier").page
        page.get_by_role("button", name="Rebuild").click()
        page.get_by_role("button", name="Do it").click()
        run = re.search(r"Run (\S+) of .* is started", answered(page))[1]
        assert airflow.api.await_run(BATCH, run, timeout=WITHIN) == "success"
        assert world.published()[DAYS[1]] != before[DAYS[1]]
        eventually(airflow.is_closed)
        page = pages.open(f"{SHOWN}/plan?from={DAYS[1]}&to=2013-01-03T00:00:00Z").page
        page.get_by_role("button", name="Backfill it").click()
        page.get_by_role("button", name="Do it").click()
        assert re.search(r"Backfill \d+ is started", answered(page))
        eventually(airflow.is_closed)

        def has_succeeded() -> bool:
            # Airflow may have closed it before it took its run, which goes on then.
            page.reload()
            return "1 success" in page.locator("#backfills tbody tr").first.inner_text()

        eventually(has_succeeded)
        page = pages.open(f"{SHOWN}/stream").page
        page.get_by_role("textbox", name="Reason").fill("a test of the pages")
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Do it").click()
        page.get_by_text("the stream should be stopped").wait_for()
        assert pages.complaints == []
    control = ControlTable.ensure(world.layout).read()
    assert (control.desired, control.actor, control.reason) == (
        Desired.STOPPED,
        "airflow:operator",
        "a test of the pages",
    )


@pytest.mark.faults
def test_a_second_backfill_backwards_beside_the_stream_gives_the_same(world: World, airflow: Airflow) -> None:
    """Reprocess behaviour completed; while it runs another one is refused and changes nothing."""
    eventually(airflow.is_closed)
    before = world.published()
    with appending(world):
        asked = airflow.backfill("completed", "--run-backwards")
        assert asked.returncode == 0, asked.stderr
        second = airflow.backfill("completed")
        assert second.returncode != 0
        assert "already" in (second.stdout + second.stderr).lower()
        runs = eventually(lambda: airflow.ended("backfill"), meanwhile=lambda: require_all_counted(world))
    assert [runs[day]["state"] for day in DAYS] == ["success"] * 2
    first, last = (parse_moment(str(runs[day]["start_date"])) for day in reversed(DAYS))
    assert first < last
    now = world.published()
    assert all(now[day] != before[day] for day in DAYS)
    require_all_counted(world)


@pytest.mark.faults
def test_only_failed_days_are_built_again_if_told_so(world: World, airflow: Airflow) -> None:
    """Reprocess behaviour failed, after somebody marked a run as failed in the UI."""
    eventually(lambda: not airflow.api.active_backfills(BATCH))
    before, run = world.published(), airflow.runs("backfill")[DAYS[0]]["dag_run_id"]
    airflow.api.call("PATCH", f"/dags/{BATCH}/dagRuns/{run.replace('+', '%2B')}", {"state": "failed"})
    assert airflow.backfill("failed").returncode == 0
    eventually(lambda: not airflow.api.active_backfills(BATCH))
    assert airflow.ended("backfill")[DAYS[0]]["state"] == "success"
    now = world.published()
    assert [day for day in DAYS if now[day] != before[day]] == DAYS[:1]


@pytest.mark.faults
def test_a_run_by_rest_takes_the_interval_that_it_is_given(world: World, airflow: Airflow) -> None:
    """A data interval of its own, not the one that Airflow would guess, nor what is dirty."""
    world.late(DAYS[0])
    before = world.published()
    span = {"data_interval_start": DAYS[1], "data_interval_end": "2013-01-03T00:00:00Z"}
    body = {"logical_date": "2013-01-02T00:05:00Z", **span}
    run = airflow.api.call("POST", f"/dags/{BATCH}/dagRuns", body)["dag_run_id"]
    assert airflow.api.await_run(BATCH, run, timeout=WITHIN) == "success"
    now = world.published()
    assert [day for day in DAYS if now[day] != before[day]] == DAYS[1:]
    require_all_counted(world)


def test_a_stream_is_operated_by_rest(world: World, airflow: Airflow) -> None:
    """The same orders as by the commands; who asked is kept, and what no form would let through is refused."""
    control = ControlTable.ensure(world.layout)
    control.want(Desired.STOPPED, actor="test", reason="no broker", now=datetime.now(UTC))
    airflow.api.unpause(STREAM)
    run = airflow.api.trigger(STREAM, {"action": "savepoint", "name": "monday", "reason": "before the sale"})
    assert airflow.api.await_run(STREAM, run, timeout=WITHIN) == "success"
    [point] = control.read().savepoints
    assert (point.name, point.reason) == ("monday", "before the sale")
    assert point.actor.startswith("airflow:")
    assert "delay_by_carrier" in point.served
    with pytest.raises(SeamlineError, match="explode"):
        airflow.api.trigger(STREAM, {"action": "explode"})
    assert control.read().desired is Desired.STOPPED


@pytest.mark.faults
def test_upkeep_beside_the_answers_changes_none(world: World, airflow: Airflow) -> None:
    """It packs what the stream wrote in small files; who reads meanwhile sees nothing of it."""
    served, published = world.answer(), world.published()
    airflow.api.unpause(UPKEEP)
    run = airflow.api.trigger(UPKEEP)
    assert airflow.api.await_run(UPKEEP, run, timeout=WITHIN) == "success"
    assert (world.answer(), world.published()) == (served, published)
    assert len(list(Table.open(world.layout.table("master")).actions()["path"])) < world.token


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_large_change_waits_for_a_person(world: World, airflow: Airflow) -> None:
    """A copy of a flight, with another delay, is in the answer until a build removes it, which changes it by more.

    A no leaves the answer as it was, and the day is not built again; a yes to the day by name publishes it.
    """
    eventually(airflow.is_closed)
    assert airflow.api.await_run(BATCH, airflow.api.trigger(BATCH), timeout=WITHIN) == "success"
    before = world.published()
    first = next(iter(read_flights(Span(parse_moment(DAYS[0]), parse_moment(DAYS[1])))))
    world.send([{**first, "dep_delay": 1e12}])
    wrong = world.answer()
    user = AirflowApi(airflow.api.url, "operator", airflow.api.password)
    states = answer_change(user, user.trigger(BATCH), "Reject")
    assert (states["publish"], states["publish_approved"]) == ("skipped", "skipped")
    assert (world.published(), world.answer()) == (before, wrong)
    again = user.trigger(BATCH)
    assert user.await_run(BATCH, again, timeout=WITHIN) == "success"
    assert set(user.task_states(BATCH, again).values()) == {"skipped"}
    states = answer_change(user, user.trigger(BATCH, {"from": DAYS[0], "to": DAYS[1]}), "Approve")
    assert (states["publish"], states["publish_approved"]) == ("skipped", "success")
    now = world.published()
    assert [day for day in DAYS if now[day] != before[day]] == DAYS[:1]
    stated = ManifestTable.ensure(world.layout).read().published.values()
    assert {each.actor for each in stated if each.interval == DAYS[0]} == {"airflow:operator"}
    assert [max(row["delay"] or 0 for row in rows) > 1e9 for rows in (wrong, world.answer())] == [
        True,
        False,
    ]


def answer_change(user: AirflowApi, run: str, answer: str) -> Mapping[str, str]:
    """Answer a run of the batch DAG whenever it asks about its change; give its tasks' states at its end.

    Where an answer comes before the scheduler knows that the task has asked, Airflow takes the task for failed, and its
    next try asks again.
    """
    task = f"/dags/{BATCH}/dagRuns/{quote_path_segment(run)}/taskInstances/approve_change/-1"
    shown: list[Mapping[str, Any]] = []

    def answer_if_asked() -> None:
        if user.task_states(BATCH, run)["approve_change"] == "awaiting_input":
            shown.append(user.call("GET", f"{task}/hitlDetails"))
            if not shown[-1]["response_received"]:
                user.call("PATCH", f"{task}/hitlDetails", {"chosen_options": [answer], "params_input": {}})

    eventually(lambda: user.run_state(BATCH, run) in ENDED, meanwhile=answer_if_asked)
    assert "would change" in shown[0]["subject"]
    assert DAYS[0] in shown[0]["body"]
    assert user.run_state(BATCH, run) == "success"
    return user.task_states(BATCH, run)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_another_team_waits_builds_and_asks(world: World, airflow: Airflow) -> None:
    """By a connection made by its form: deferred until the day is certified, and each button leads to a page."""
    eventually(airflow.is_closed)
    api = airflow.api
    told = connect(api, world.home / "warehouse", world.definition.parent)
    assert (told["status"], told["message"]) == (True, "1 pipelines: flights")
    log = world.home / "streams" / "flights" / "driver.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("what a driver says\n")
    api.unpause(HOURS)
    run = api.trigger(REPORT)
    eventually(lambda: api.task_states(REPORT, run)["wait"] == "deferred")
    world.watermark = NEXT
    world.send(read_flights(Span(parse_moment(DAY), parse_moment(NEXT))))
    assert api.await_run(BATCH, api.trigger(BATCH), timeout=WITHIN) == "success"
    assert api.await_run(REPORT, run, timeout=WITHIN) == "success"
    waited, asked, rows = (xcom_of(api, run, task) for task in ("wait", "rebuild", "ask"))
    assert (waited["intervals"], waited["until"]) == (1, "certified")
    assert asked in {each["dag_run_id"] for each in api.runs(BATCH, "operator_triggered")}
    assert len({row["window_start"] for row in rows}) > 12
    served = [row for row in world.answer() if row["window_start"] >= parse_moment(DAY)]
    assert sum(row["flights"] for row in rows) == sum(row["flights"] for row in served)
    links = {f"{task} {name}": url for task in TEAM for name, url in links_of(api, run, task).items()}
    assert {name: url for name, url in links.items() if not url} == {}
    assert sorted(links) == TEAM_LINKS
    assert {name: asked_page(url, api.token) for name, url in links.items()} == dict.fromkeys(links, 200)
    [told] = eventually(lambda: ended_of(api, DAY.removesuffix("Z")))
    assert told["state"] == "success"
    assert len(xcom_of(api, told["dag_run_id"], "ask", HOURS)) == len(rows)


def ended_of(api: AirflowApi, partition: str) -> list[Mapping[str, Any]]:
    """Return the run that the event of a partition has started, once it has ended."""
    runs = api.runs(HOURS, "asset_triggered")
    return [each for each in runs if each["partition_key"] == partition and each["state"] in ENDED][:1]


def asked_page(address: str, token: str) -> int:
    """Open a page as who is logged in; give the code."""
    return asked(address, f"Bearer {token}")[0]


def test_a_password_stands_nowhere(world: World, airflow: Airflow, scheduled: Mapping[str, Any]) -> None:
    """Not in Airflow's database (XComs, rendered fields, audit log), no log of a task, no table and no file of ours."""
    assert scheduled["state"] == "success"
    files = [file for file in world.home.rglob("*") if file.is_file()]
    assert [file.name for file in files if file.name == "airflow.db"]
    assert [str(file) for file in files if CANARY.encode() in file.read_bytes()] == []
