"""What the chart's files say, as far as that can be seen without Helm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from tests.charts.rendering import AIRFLOW, CHART, ROOT

from seamline.local.airflow import AirflowStandalone
from seamline.orchestration.pools import POOLS
from seamline.version import RECORDED

VARIABLE = re.compile(r"\b(?:SEAMLINE|SPARK)_[A-Z_]*[A-Z]\b")
OF_SPARK = {"SPARK_CONF_DIR", "SPARK_LOCAL_HOSTNAME"}
OF_AN_EXECUTOR = re.compile(
    r"SPARK_(EXECUTOR|JAVA|DRIVER|APPLICATION|RESOURCE)_[A-Z_]+|SPARK_(DIST_)?CLASSPATH"
)
ONLY_HERE = {"SEAMLINE_POD_NAME"}
"""What files of the chart hand to each other."""


def read_airflow_values() -> dict[str, Any]:
    """Read the values for Airflow's own chart."""
    found: dict[str, Any] = yaml.safe_load((CHART / "examples" / f"{AIRFLOW}.yaml").read_text())
    return found


def airflow_variables() -> dict[str, Any]:
    """Read the variables that Airflow's pods get."""
    return {each["name"]: each.get("value") for each in yaml.safe_load(read_airflow_values()["extraEnv"])}


def test_the_chart_is_of_this_release() -> None:
    """Its image is the release's, by default; Airflow's chart has no default for ours."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == RECORDED
    assert read_airflow_values()["defaultAirflowTag"] == RECORDED


def test_variables_of_the_chart_are_ours_or_sparks() -> None:
    """A variable that was renamed is set for nobody."""
    code = "\n".join(file.read_text() for file in (ROOT / "include" / "seamline").rglob("*.py"))
    files = [file for file in CHART.rglob("*") if file.is_file()]
    found = {name for file in files for name in VARIABLE.findall(file.read_text())}
    assert {"SEAMLINE_HOME", "SEAMLINE_RECONCILE", "SEAMLINE_POD_ID"} <= found
    unknown = {name for name in found - OF_SPARK - ONLY_HERE if not OF_AN_EXECUTOR.fullmatch(name)}
    assert {name for name in unknown if not re.search(rf"\b{name}\b", code)} == set()


def test_airflow_compares_where_the_chart_supervises() -> None:
    """Two supervisors of a stream fence each other off; a queue that nobody serves holds its tasks for ever."""
    given = airflow_variables()
    assert given["SEAMLINE_RECONCILE"] == "compare"
    assert given["SEAMLINE_STREAM_QUEUE"] == "default"


def test_the_dags_of_many_pipelines_are_not_taken_for_removed(tmp_path: Path) -> None:
    """By its defaults 200 pipelines on a busy machine lost all DAGs, for up to 24 minutes, and nothing said so."""
    page = (ROOT / "docs" / "airflow.md").read_text()
    told = dict(re.findall(r"^    (AIRFLOW__\w+(?:TIMEOUT|THRESHOLD))=(\d+)$", page, re.MULTILINE))
    assert len(told) == 3
    composed = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["x-airflow"]["environment"]
    local = AirflowStandalone(tmp_path, 8080, root=ROOT).settings()
    for settings in (airflow_variables(), composed, local):
        assert told.items() <= settings.items()


def test_airflow_has_its_pools() -> None:
    """A task whose pool is missing waits for ever."""
    command = read_airflow_values()["migrateDatabaseJob"]["args"][-1]
    for name, (slots, _) in POOLS.items():
        assert f"airflow pools set {name} {slots} " in command


def test_airflow_submits_to_kubernetes() -> None:
    """By Spark's provider, whose driver runs where the task does."""
    given = json.loads(airflow_variables()["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert given["conn_type"] == "spark" and given["host"].startswith("k8s://https://")
    assert given["extra"]["deploy-mode"] == "client"
    assert re.search(r"^apache-airflow-providers-cncf-kubernetes==", pins(), re.MULTILINE)


def pins() -> str:
    """Read what the image has on top."""
    return (ROOT / "requirements-image.txt").read_text()


def test_nobody_writes_a_secret_into_values() -> None:
    """Examples are copied."""
    for file in (CHART / "examples").glob("*.yaml"):
        for line in file.read_text().splitlines():
            assert not re.search(
                r"(?i)(password|secret|token|accesskey)\w*:\s*[^{\s#]*[A-Za-z0-9+/]{20,}", line
            ), line
    names = airflow_variables()
    assert names["AIRFLOW_CONN_KAFKA_DEFAULT"] is None


def test_the_user_is_the_images() -> None:
    """A pod of another user could not write into what the image gives to its own."""
    said = re.search(r"useradd [^\n]*--uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert said and f"runAsUser: {said[1]}" in (CHART / "templates" / "_helpers.tpl").read_text()


def test_paths_are_the_images() -> None:
    """The definitions of the image, and the folder that the pods may write."""
    image, helpers = (ROOT / "Dockerfile").read_text(), (CHART / "templates" / "_helpers.tpl").read_text()
    settings = dict(re.findall(r"(SEAMLINE_[A-Z]+)=(\S+)", image))
    assert settings["SEAMLINE_HOME"] in helpers
    assert settings["SEAMLINE_PIPELINES"] in helpers
    assert Path(settings["SEAMLINE_HOME"]).parent == Path("/srv/seamline")
