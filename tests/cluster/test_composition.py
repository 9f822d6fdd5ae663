"""docker-compose.yaml as it is read here, and that what it says can be run here."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from airflow.executors.base_executor import BaseExecutor
from tests.cluster.command import empty_folder
from tests.cluster.composition import (
    ROOT,
    Service,
    fill_in,
    list_stops,
    order_services,
    read_composition,
    read_duration,
    read_image_environment,
)
from tests.cluster.images import APP, STATE, translate, translate_check
from tests.cluster.stack import make_values

from seamline.local.environment import read_env_file
from seamline.model.errors import SetupError

PROFILES = ("", "celery")
CELERY = {"valkey", "airflow-worker", "airflow-stream-worker"}
HOST = re.compile(r"(?:[a-z0-9+]+://|@|^)(?:[^:/@ ]*:[^@/ ]*@)?([a-z][a-z0-9-]*)(?=[:/])")


def read(profile: str) -> list[Service]:
    return read_composition(make_values("LocalExecutor"), profiles=[profile])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "one"),
        ("x-${A}-${B:-two}", "x-one-two"),
        ("${B:-}", ""),
        ("$$(hostname) ${A:?why}", "$(hostname) one"),
        ("{}", "{}"),
    ],
)
def test_variables_are_filled_in_as_compose_does(text: str, expected: str) -> None:
    assert fill_in({"a": [text]}, {"A": "one"}) == {"a": [expected]}


@pytest.mark.parametrize("text", ["${B:?a password}", "${B}"])
def test_a_variable_that_is_missing_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="asks for B"):
        fill_in(text, {"A": "one"})


def test_services_that_wait_for_each_other_are_named() -> None:
    def service(name: str, before: str) -> Service:
        return Service(name, "", (), {}, {before: "service_started"}, (), {}, 1, ())

    with pytest.raises(ValueError, match="a, b"):
        list(order_services([service("a", "b"), service("b", "a")]))


@pytest.mark.parametrize("profile", PROFILES)
def test_each_service_comes_behind_those_that_it_waits_for(profile: str) -> None:
    seen: set[str] = set()
    for each in read(profile):
        assert set(each.depends_on) <= seen
        seen.add(each.name)
    assert (seen >= CELERY) is (profile == "celery")


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_is_stopped_before_those_that_need_it(profile: str) -> None:
    """Schedulers and workers have the time that the composition gives them; all of one kind end at once."""
    stops = list(list_stops(read(profile)))
    names = [{each.name for each in at_once} for at_once in stops]
    for at, at_once in enumerate(stops):
        after = set[str]().union(*names[at + 1 :])
        assert all(set(each.depends_on) <= after for each in at_once)
    assert sum(map(len, stops)) == len(read(profile))
    assert "airflow-scheduler" in names[0] and "postgres" in names[-1]
    assert [each.grace for each in stops[0] if each.name == "airflow-scheduler"] == [120]


@pytest.mark.parametrize(("text", "seconds"), [("2m", 120), ("10s", 10), ("1m30s", 90)])
def test_durations_are_read(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "2h", "soon"])
def test_a_duration_of_another_form_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is no duration"):
        read_duration(text)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_service_can_be_run_as_a_process(profile: str, tmp_path: Path) -> None:
    """A service that is added to the composition, and not to the process stack, fails here."""
    for each in read(profile):
        folder = tmp_path / each.name
        folder.mkdir()
        command, environment = translate(each, folder, dict.fromkeys(each.volumes, tmp_path), s3="moto")
        told = [*command, *environment.values()]
        assert command and not [text for text in told if APP in text or STATE in text]
        assert bool(translate_check(each)) is bool(each.check)


def test_what_lives_is_started_again_and_what_has_done_its_work_is_not() -> None:
    """Airflow's processes end when their database is away: without a restart the streams' hosts would be gone."""
    for each in read("celery"):
        assert each.is_started_again(1)
        assert each.is_started_again(0) is not each.ends


@pytest.mark.parametrize("profile", PROFILES)
def test_whoever_is_spoken_to_is_there(profile: str) -> None:
    """A service that was given another name is still called by the old one somewhere."""
    services = read("celery")
    names = {name for each in services for name in (each.name, *each.hosts)} | {"localhost", "lake"}
    texts = [text for each in services for text in (*each.environment.values(), *each.command)]
    called = {name for text in texts for name in HOST.findall(text)}
    assert {"kafka", "postgres", "s3", "spark-master", "valkey", "airflow-api-server"} <= called
    assert called - names <= {"org"}


def test_a_worker_throws_away_what_an_application_has_left() -> None:
    """The jars that each build brings along, 32 MB, stayed on each worker for a week."""
    [worker] = [each for each in read("") if each.name == "spark-worker"]
    [seconds] = re.findall(r"appDataTtl=(\d+)", worker.environment.get("SPARK_WORKER_OPTS", ""))
    assert int(seconds) <= 86_400


def test_the_image_has_what_a_checkout_has() -> None:
    """Which folders there are is said by a checkout's own settings, and by the image's."""
    written = {name for name in read_env_file(ROOT) if name.startswith("SEAMLINE_")}
    assert {"SEAMLINE_HOME", "SEAMLINE_JARS", "SEAMLINE_PIPELINES", "SEAMLINE_WAREHOUSE"} <= written
    assert {*written, "AIRFLOW_HOME"} <= set(read_image_environment())


def test_the_executor_of_the_profile_can_be_loaded() -> None:
    """The newest Celery had moved what Airflow's provider imports: no worker of the profile came up."""
    found = import_module("airflow.providers.celery.executors.celery_executor")
    assert issubclass(found.CeleryExecutor, BaseExecutor)


def test_a_folder_that_is_not_a_trials_own_is_not_emptied(tmp_path: Path) -> None:
    """`--home` may name any folder."""
    (tmp_path / "letters").touch()
    with pytest.raises(SetupError, match="no trial has written"):
        empty_folder(tmp_path)
    assert (tmp_path / "letters").exists()
    empty_folder(tmp_path / "new")
    (tmp_path / "new" / "old").touch()
    empty_folder(tmp_path / "new")
    assert not (tmp_path / "new" / "old").exists()
