"""A day's report of another team over a view of hours, in a real Airflow: it waits for each of the 24."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.rig.trial import eventually
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

pytestmark = pytest.mark.faults
ROOT = Path(__file__).parents[3]
HOUR = DAY / 24
HOURLY = DEFINITION.replace('interval="1 day"', 'interval="1 hour"')
LAST = 23


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A day of hours, most of them without sales, of which the last is not built."""
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    (definitions / "shop.py").write_text(HOURLY)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "w"))
    monkeypatch.setenv("AIRFLOW_CONN_SEAMLINE_DEFAULT", json.dumps({"conn_type": "seamline"}))
    made = Shop(tmp_path / "w", sales_pipeline(text=HOURLY))
    made.epoch([Sale(1, "a", 10), Sale(70, "b"), Sale(LAST * 60 + 5, "a", 7)], watermark=START + 2 * DAY)
    for hour in range(LAST):
        made.build(hour, 0, f"g{hour}", length=HOUR)
    return made


def test_a_day_of_another_team_waits_for_its_24_hours(database: None, shop: Shop, tmp_path: Path) -> None:
    """The sensor takes the run's data interval; hours without rows count as others do."""
    # The run of this date is for the day before it, as by its schedule.
    words = [str(tmp_path), "daily", "2013-01-02T00:00:00+00:00"]
    command = [sys.executable, "-m", "tests.dags.provider.waiting_dag", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        eventually("a look", lambda: (tmp_path / "looked").exists() or running.poll() is not None)
        assert running.poll() is None, "it did not wait for the last hour"
        shop.build(LAST, 0, "last", length=HOUR)
        said, _ = running.communicate(timeout=120)
    found = json.loads(said.splitlines()[-1])
    assert found["states"] == [["all_hours", -1, "success"], ["ask", -1, "success"]]
    waited = found["xcoms"]["all_hours.return_value"]
    assert (waited["intervals"], waited["until"]) == (24, "certified")
    assert waited["span"] == "2013-01-01T00:00:00Z/2013-01-02T00:00:00Z"
    assert sum(row["orders"] for row in found["xcoms"]["ask.return_value"]) == 3
    assert found["xcoms"]["ask.answer"]["final"]
