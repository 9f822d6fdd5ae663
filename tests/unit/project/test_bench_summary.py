"""What a run of the benchmarks says together, above all where a part of it is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as suite
from benchmarks.summary import GOALS, Goal, complete, lines, summary

NAMED = {
    "throughput": ("ratio_vs_spark_lambda", "ratio_vs_spark_stateful", "ratio_vs_flink_same_work"),
    "freshness": ("p50_s", "p99_s"),
    "batch": ("ratio_vs_duckdb", "late_row_over_interval"),
    "serving": ("point_p99_ms",),
}


def drained(system: str, rate: float, cpu: float = 1.0) -> dict[str, Any]:
    """Return what the summary reads of one drain."""
    return {"system": system, "steady_rate": rate, "cpu_per_million": cpu, "first_epoch": 9.0}


def test_the_ratio_is_that_of_medians_and_to_the_faster_of_the_jobs_by_hand() -> None:
    """A tuned job must not hide behind a plain one, nor one slow run decide."""
    runs = [drained("seamline", rate, 4.0) for rate in (300, 310, 20)]
    runs += [drained("spark_lambda", 100), drained("spark_tuned", 150), drained("spark_tuned", 150)]
    found = summary({"drain": {"runs": runs}})["throughput"]
    assert found["ratio_vs_spark_lambda"] == 2.0
    assert found["cpu_s_per_million"] == 4.0
    assert found["ratio_vs_flink_same_work"] is None


def test_what_was_not_run_is_null_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody takes an old figure for one of this run."""
    monkeypatch.setattr("benchmarks.results.FOLDER", tmp_path)
    (tmp_path / "batch.json").write_text('{"warm": {"seamline": 1.0, "duckdb": 1.0}}')
    assert suite.main(["--json", "--only", ""]) == suite.INCOMPLETE
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    for group, names in NAMED.items():
        assert [said[group][name] for name in names] == [None] * len(names)


def test_a_run_that_goes_on_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two hours are not to be spent again for one section."""
    monkeypatch.setattr("benchmarks.results.FOLDER", tmp_path)
    (tmp_path / "batch.json").write_text('{"warm": {"seamline": 3.0, "duckdb": 2.0}}')
    assert suite.main(["--json", "--resume", "--only", ""]) == suite.INCOMPLETE
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["batch"]["ratio_vs_duckdb"] == 1.5


def test_a_goal_is_a_bound_from_one_side() -> None:
    """And each is about a figure that there is."""
    assert Goal("a", "b", 2.0, at_least=True).met(2.0) and not Goal("a", "b", 2.0, at_least=True).met(1.9)
    assert Goal("a", "b", 2.0).met(2.0) and not Goal("a", "b", 2.0).met(2.1)
    empty = summary({})
    assert not complete(empty)
    assert len([*lines(empty)]) == len(GOALS)
    assert all("not run" in line for line in lines(empty))


def test_what_airflow_takes_is_told_apart_from_the_build() -> None:
    """The same day in a warm Spark is no cost of Airflow; without it nothing is known."""
    runs = {"spark": {"whole": 30.0}, "spark_connect": {"whole": 12.5}}
    found = summary({"airflow_runs": runs, "builds": {"day_s": 2.5}})["batch"]
    assert (found["airflow_beyond_build_s"], found["airflow_resident_beyond_build_s"]) == (27.5, 10.0)
    assert summary({"airflow_runs": runs})["batch"]["airflow_beyond_build_s"] is None


def test_a_section_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Left out without a word it would look as if it had been run."""
    with pytest.raises(SystemExit) as refused:
        suite.main(["--only", "drain,batches"])
    assert refused.value.code == 2
    assert "there is no 'batches'; there are: drain, freshness" in capsys.readouterr().err
