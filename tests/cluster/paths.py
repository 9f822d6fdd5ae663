"""Every way that a stream and a build take through Spark, on the executors of a cluster, against plain counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.cluster.pulse import FIRST, WITHIN, expect
from tests.cluster.stack import ProcessStack

from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import locate_tables
from seamline.local.demo.stages import wait_for_condition
from seamline.model.compile.catalog import load_pipeline
from seamline.model.errors import NotFound, SeamlineError, SetupError
from seamline.orchestration.airflow_api import AirflowApi
from seamline.serve.read import read
from seamline.supervisor.outside import read_stream_status

NAME, HOST = "paths", "airflow-scheduler-1"
MENDED = ('"id * 2"', '"id * 3"')
"""What a corrected definition says: all rows of before are validated again."""


def take_all_paths(stack: ProcessStack, definition: Path, sent: int) -> None:
    """Read the numbers anew in parts, build them by every path, mend the definition, and build them again."""
    api = AirflowApi.from_env()
    wait_for_condition("Airflow to read the DAGs", lambda: has_dag(api), 120)
    api.unpause(f"{NAME}__stream")
    wait_for_condition("the stream to read all", lambda: has_read(sent), WITHIN)
    require(sent, 2, ["merged", "speed"])
    build(stack)
    require(sent, 2, ["merged", "batch"])
    definition.write_text(definition.read_text().replace(*MENDED))
    stack.run(HOST, "seamline", "stream", "restart", NAME)
    wait_for_condition("the mended stream to be up", lambda: read_stream_status(NAME).running, WITHIN)
    build(stack)
    require(sent, 2, ["merged", "batch"])
    mended = load_pipeline(definition.parent, NAME)
    require(sent, 3, ["merged", "batch"], {view.name: view.fingerprint for view in mended.views})
    stack.run(HOST, "seamline", "stream", "stop", NAME)


def has_dag(api: AirflowApi) -> bool:
    """Return whether Airflow has read the pipeline's DAG."""
    try:
        return bool(api.dag(f"{NAME}__stream"))
    except NotFound:
        return False


def has_read(sent: int) -> bool:
    """Return whether the stream has read all, the numbers that close the days with them."""
    layout = locate_tables(NAME)
    try:
        if not Master.exists(layout):
            return False
        master = Master.open(layout)
        offsets = sum(len(part) for epoch in known_epochs(layout) for part in epoch.ranges)
    except SeamlineError:
        return False
    return offsets > sent and master.edge == master.epoch


def build(stack: ProcessStack) -> None:
    """Build all days by spark-submit to the cluster, as a person does at a shell."""
    days = ["--from", f"{FIRST:%Y-%m-%d}", "--to", "2024-01-04"]
    stack.run(HOST, "seamline", "run", NAME, *days, "--reason", "every path", timeout=WITHIN)


def require(sent: int, worth: int, sides: list[str], versions: Mapping[str, str] | None = None) -> None:
    """Require that every view says what a plain count says; SetupError for one that does not.

    ``versions`` are fingerprints by view, where others than the served versions are asked.
    """
    days = expect(sent)
    plain: dict[str, Callable[[list[dict[str, Any]]], object]] = {
        "by_day": lambda rows: {row["window_start"]: (row["n"], row["worth"]) for row in rows},
        "by_id": lambda rows: sorted((row["id"], row["n"]) for row in rows),
        "tens": lambda rows: sum(row["n"] for row in rows),
        "twins_by_day": lambda rows: {row["window_start"]: row["n"] for row in rows},
    }
    right = {
        "by_day": {day: (n, total * worth) for day, (n, total, _) in days.items()},
        "by_id": [(number, 1) for number in range(sent)],
        "tens": sum(n for n, _, _ in days.values()),
        "twins_by_day": {day: n for day, (n, _, _) in days.items()},
    }
    for side in sides:
        for view, shape in plain.items():
            version = (versions or {}).get(view, "")
            answer: Any = read(f"{NAME}.{view}", side=side, version=version, format="answer")
            rows = [row for row in answer.table.to_pylist() if start_of(row) in days]
            if (found := shape(rows)) != right[view]:
                raise SetupError(f"{side} of {view}: {found}, and not {right[view]}.", hint="see the logs.")


def start_of(row: dict[str, Any]) -> datetime:
    """Return the start of the day that a row is of."""
    found: datetime = row.get("window_start") or row["interval_start"]
    return found
