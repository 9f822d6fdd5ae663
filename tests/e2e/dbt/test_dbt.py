"""dbt-core and dbt-duckdb read what `seamline export dbt` has written: models, freshness, and tests that can fail."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import deltalake
import duckdb
import pytest
from tests.package.environments import make_environment, run_clean
from tests.unit.past import build, sell_two_days
from tests.unit.shop import Shop, opened

from seamline.cli import main
from seamline.lake.read.serving_table import ensure_serving_table, refresh_serving_table
from seamline.serve.read import read

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[3]
PINS = ROOT / "requirements-dbt.txt"
PROJECT = "name: reports\nprofile: seamline\nmodel-paths: [models]\n"
MODEL = """
{{ config(materialized="table") }}
select customer, sum(total) as total from {{ source("shop", "sales") }} group by customer
"""
ONE_ROW, CERTIFIED = (
    "shop_sales_has_one_row_for_a_key_and_window",
    "shop_sales_is_certified_where_it_should_be",
)


@pytest.fixture(scope="module")
def dbt() -> Path:
    """Install dbt by its pins into an environment that is kept until they change."""
    kept = ROOT / ".seamline" / "services" / f"dbt-{hashlib.sha256(PINS.read_bytes()).hexdigest()[:12]}"
    if not (ready := kept / "ready").exists():
        home = make_environment(kept)
        python = str(home / "bin" / "python")
        run_clean(["uv", "pip", "install", "--quiet", "--python", python, "-r", str(PINS)], kept)
        ready.touch()
    return kept / "venv" / "bin" / "dbt"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days of sales, long ago, the first of them built; a project of dbt beside them, with one model."""
    made = opened(tmp_path, monkeypatch)
    sell_two_days(made)
    refresh_serving_table(made.compiled, made.layout, made.view)
    models = tmp_path / "reports" / "models"
    models.mkdir(parents=True)
    (models / "totals.sql").write_text(MODEL)
    (models.parent / "dbt_project.yml").write_text(PROJECT)
    return made


def export(folder: Path, *options: str) -> Path:
    """Write the sources into the project, and make the example the profile; return the sources."""
    models = folder / "reports" / "models"
    assert main(["export", "dbt", "--output", str(models), *options]) == 0
    (models.parent / "profiles.yml").write_text((models / "profiles.example.yml").read_text())
    (models / "profiles.example.yml").unlink()
    return models / "sources.yml"


def run(dbt: Path, folder: Path, *command: str) -> tuple[int, dict[str, str]]:
    """Run a command of dbt; return its exit code, and the status of each node by its name."""
    project = folder / "reports"
    done = subprocess.run(
        [str(dbt), "--no-send-anonymous-usage-stats", *command],
        cwd=project,
        env={**{name: each for name, each in os.environ.items() if not name.startswith("PYTHON")}},
        capture_output=True,
        text=True,
        check=False,
    )
    results = project / "target" / ("sources.json" if command[0] == "source" else "run_results.json")
    assert results.exists(), done.stdout
    found = {each["unique_id"]: each["status"] for each in json.loads(results.read_text())["results"]}
    return done.returncode, {name_node(name): status for name, status in found.items()}


def name_node(unique_id: str) -> str:
    """Return the name of a node: behind its kind and its project, without a hash."""
    return unique_id.split(".")[2]


def test_dbt_builds_on_what_is_served(dbt: Path, shop: Shop, tmp_path: Path) -> None:
    """A model has the numbers of `seamline.read`, and the tests say what is not certified yet."""
    export(tmp_path)
    code, found = run(dbt, tmp_path, "build")
    assert code == 0 and len(found) == 14, found
    assert {name for name, status in found.items() if status not in ("pass", "success")} == {CERTIFIED}
    assert found[CERTIFIED] == "warn" and found[ONE_ROW] == "pass"
    answer = read("shop.sales")
    wanted = duckdb.sql("SELECT customer, sum(total) FROM answer GROUP BY 1 ORDER BY 1").fetchall()
    assert answer.num_rows == 4
    with duckdb.connect(str(tmp_path / "reports" / "seamline.duckdb"), read_only=True) as con:
        assert con.execute("SELECT customer, total FROM totals ORDER BY 1").fetchall() == wanted


def test_tests_find_what_they_are_for(dbt: Path, shop: Shop, tmp_path: Path) -> None:
    """A window that should be certified and is not, until it is; and a row that is there twice."""
    export(tmp_path, "--severity", "error")
    code, found = run(dbt, tmp_path, "test")
    assert code == 1 and found[CERTIFIED] == "fail"
    build(shop, "h", cut=0, day=1)
    refresh_serving_table(shop.compiled, shop.layout, shop.view)
    code, found = run(dbt, tmp_path, "test")
    assert code == 0 and {*found.values()} == {"pass"}, found
    table = ensure_serving_table(shop.layout, shop.view)
    deltalake.write_deltalake(str(table.root), table.read().slice(0, 1), mode="append")
    code, found = run(dbt, tmp_path, "test")
    assert code == 1 and {name for name, status in found.items() if status == "fail"} == {ONE_ROW}


def test_freshness_is_the_age_of_the_newest_certified_window(dbt: Path, shop: Shop, tmp_path: Path) -> None:
    """Windows that nobody has certified do not count."""
    sources = export(tmp_path)
    code, found = run(dbt, tmp_path, "source", "freshness")
    assert code == 1 and found == {"shop": "error"}
    [result] = json.loads((tmp_path / "reports" / "target" / "sources.json").read_text())["results"]
    assert result["max_loaded_at"] == "2013-01-01T02:00:00+00:00"
    text = sources.read_text()
    sources.write_text(text.replace("count: 2\n", "count: 90000\n").replace("count: 4\n", "count: 90000\n"))
    assert run(dbt, tmp_path, "source", "freshness") == (0, {"shop": "pass"})
