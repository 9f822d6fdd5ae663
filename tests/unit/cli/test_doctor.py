"""What an installation lacks is said with a way out."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.unit.shop import opened

from seamline.cli import main
from seamline.cli.context import load_configured_catalog
from seamline.cli.doctor import (
    check_airflow,
    check_extra,
    check_packages,
    check_spark_client,
    check_supervisors,
    list_requirements,
)
from seamline.cli.machine_checks import check_java, check_writable
from seamline.lake.store.locations import Location
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import NotFound
from seamline.orchestration.airflow_api import AirflowApi
from seamline.runtime.java import list_java_parts
from seamline.supervisor import resident

ROOT = Path(__file__).parents[3]


class Airflow(AirflowApi):
    """An Airflow that has what it is given, by path."""

    def __init__(self, **has: dict[str, Any]) -> None:
        super().__init__("http://airflow", "user", "password")
        self.has = {f"/{name.replace('__of__', '/')}": answer for name, answer in has.items()}

    def call(self, method: str, path: str, *args: Any, **given: Any) -> dict[str, Any]:
        if path not in self.has:
            raise NotFound(path)
        return self.has[path]


def test_what_is_looked_for_is_what_the_package_asks_for() -> None:
    """A list of its own would drift from the project's; what the demo alone needs is not missing."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {str(each) for each in list_requirements()} == {str(Requirement(line)) for line in declared}


def test_a_warehouse_in_a_bucket_needs_jars_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams and most builds run without: the first that Spark reads itself would fail."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "/srv/warehouse")
    assert not [each for each in check_java() if "bucket" in each.name]
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "s3://lake")
    [found] = [each for each in check_java() if "bucket" in each.name]
    assert (found.good, found.found) == (True, f"{len(list_java_parts('s3'))} jars")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_SHOP", "s3://lake/shop")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "/srv/warehouse")
    [found] = [each for each in check_java() if "bucket" in each.name]
    assert found.good and found.name.endswith("of SEAMLINE_WAREHOUSE_SHOP")
    monkeypatch.setenv("SEAMLINE_JARS", str(tmp_path))
    [found] = [each for each in check_java() if "bucket" in each.name]
    assert not found.good
    assert "seamline setup --store" in found.hint


def test_a_version_that_was_not_tried_is_named_with_the_one_that_was() -> None:
    """An Airflow that was there before has constraints of its own."""
    installed = {"pyspark": "4.1.0", "pandas": "2.3.1", "pyspark-client": "4.2.0"}
    wanted = [Requirement(line) for line in ("pyspark==4.2.0", "pandas<3", "duckdb>=2")]

    def version(name: str) -> str:
        return installed.get(name, "")

    said = [str(each) for each in (*check_packages(wanted, version), *check_spark_client(version))]
    assert [*check_spark_client(lambda name: version(name) if name == "pyspark-client" else "")] == []
    assert said[-1].endswith("Hint: pip install pyspark-client==4.1.0: it lays its files over pyspark's.")
    assert said == [
        "LACKS pyspark: 4.1.0. Hint: pip install 'pyspark==4.2.0'",
        "ok    pandas: 2.3.1",
        "LACKS duckdb: not installed. Hint: pip install 'duckdb>=2'",
        said[-1],
    ]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The warehouse may not be there yet; what is above it must let us make it."""
    assert check_writable("SEAMLINE_WAREHOUSE", tmp_path / "not" / "yet").good
    assert not check_writable("SEAMLINE_WAREHOUSE", Path("/proc/seamline")).good


def test_airflow_is_asked_for_what_our_tasks_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task without its pool, or of a paused DAG, waits for ever and says nothing."""
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    airflow = Airflow(
        version={"version": "3.2.0"},
        importErrors={"import_errors": [{"stack_trace": "Traceback\n  in x\nImportError: no seamline\n"}]},
        pools__of__seamline_batch={},
        dags__of__shop__batch={"is_paused": True},
        dags__of__shop__stream={"is_paused": False},
        dags__of__seamline__reconcile={"is_paused": True},
    )
    said = [str(each) for each in check_airflow(airflow, ["shop"])]
    assert [each for each in said if each.startswith("ok")] == [
        "ok    pool seamline_batch: is there",
        "ok    DAG shop__stream: runs",
    ]
    assert [each.partition(". Hint: ")[::2] for each in said if each.startswith("LACKS")] == [
        ("LACKS Airflow's version: 3.2.0", "run apache-airflow<4,>=3.3."),
        ("LACKS DAG file: ImportError: no seamline", "fix what Airflow cannot import."),
        (
            "LACKS pool seamline_stream: Airflow has none; a task that needs it would wait or fail",
            "airflow pools set seamline_stream 8 Seamline",
        ),
        (
            "LACKS connection spark_default: Airflow has none; a task that needs it would wait or fail",
            "airflow connections add spark_default --conn-type spark --conn-host 'local[*]'",
        ),
        ("LACKS DAG shop__batch: paused", "airflow dags unpause shop__batch"),
        (
            "LACKS DAG shop__upkeep: Airflow has not parsed it",
            "put the two lines of docs/airflow.md into Airflow's folder of DAGs.",
        ),
        ("LACKS DAG seamline__reconcile: paused", "airflow dags unpause seamline__reconcile"),
    ]


def test_the_command_names_a_broken_definition_and_leaves_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bad file, no Airflow: everything else is still looked at."""
    (tmp_path / "worse.py").write_text("import nowhere")
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    monkeypatch.delenv("SEAMLINE_AIRFLOW_URL", raising=False)
    assert main(["doctor"]) == 6
    printed = capsys.readouterr()
    assert "LACKS definition: " in printed.out
    assert "worse.py:1" in printed.out
    assert "LACKS Airflow: The access to Airflow is not configured" in printed.out
    assert "ok    SEAMLINE_WAREHOUSE" in printed.out
    assert "checks failed" in printed.err


def test_a_stream_that_is_wanted_and_down_is_named(
    tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is the resident driver; one that nobody wants is not missing."""
    shop = opened(tmp_path, monkeypatch, warehouse)
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    assert list(check_supervisors(load_configured_catalog())) == []
    now = datetime.now(UTC)
    tables = [ControlTable.ensure(each) for each in (shop.layout, resident.resident_layout())]
    for table in tables:
        table.want(Desired.RUNNING, actor="ada", reason="", now=now)
    assert [(each.name, each.good) for each in check_supervisors(load_configured_catalog())] == [
        ("stream shop", False),
        ("resident driver", False),
    ]
    tables[0].take("somebody", now=now)
    assert [each.good for each in check_supervisors(load_configured_catalog())] == [True, False]


def test_an_extra_is_checked_where_it_is_installed() -> None:
    """Who only reads has anyio of httpx, and needs no page; who has pages needs all that they are made with."""
    [left] = check_extra(
        "web", lambda name: {"anyio": "4.1", "fastapi": "0.116", "limits": "5.1"}.get(name, "")
    )
    assert str(left).startswith("ok    seamline[web]: not installed; it adds the pages")
    found = [str(each) for each in check_extra("web", lambda name: {"plotly": "6.1"}.get(name, ""))]
    assert "ok    plotly: 6.1" in found
    assert "LACKS limits: not installed. Hint: pip install 'limits>=5'" in found
