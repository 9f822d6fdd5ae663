"""Tables of so many published intervals: what a plan, a publication and an answer cost."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks import answers
from benchmarks.scale.trials.tables import peak_mb
from seamline.lake.publish.planning import plan_run
from seamline.lake.storage.kept import cached_table
from seamline.lake.tables.manifest_table import ManifestTable, manifest_of
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.time.intervals import format_utc_instant
from seamline.serve.read import read

HOUR = timedelta(hours=1)
AGAIN = 3


class Hours(answers.Tables):
    """Tables of so many hours, all of them published; ``keys`` states in each; the ledger knows how many rows."""

    def __init__(self, home: Path, hours: int, keys: int) -> None:
        self.hours, self.keys = hours, keys
        asked = argparse.Namespace(
            windows=hours,
            keys=keys,
            window="1 hour",
            slide="",
            session=False,
            interval="1 hour",
            published=1.0,
        )
        rows = {self.name(number): keys for number in range(hours)}
        made = answers.Epoch

        def with_rows(*given: Any, **facts: Any) -> Any:
            return replace(made(*given, **facts), accepted=rows, watermark=answers.BEGIN + hours * HOUR)

        with patch.object(answers, "Epoch", with_rows):
            super().__init__(home, asked)

    @staticmethod
    def name(number: int) -> str:
        """Name an hour."""
        return format_utc_instant(answers.BEGIN + number * HOUR)

    def publish_again(self, number: int) -> None:
        """Publish an hour once more, as a run would that has built it again."""
        table = ManifestTable.ensure(self.layout)

        def decision(_: object) -> list[Statement]:
            id, now = self.name(number), datetime.now(UTC)
            return [Statement(Act.PUBLISH, self.view.id, 0, id, "g", self.keys, certified=True, at=now)]

        table.decide(decision)

    def ask(self, **bounds: Any) -> int:
        """Answer; return how many rows."""
        found = read(
            "sensors.readings",
            format="arrow",
            warehouse=self.warehouse,
            definitions=self.definitions,
            **bounds,
        )
        return int(found.num_rows)


def measure_intervals(sizes: Mapping[str, float]) -> dict[str, float]:
    """Plan, publish and answer over ``intervals`` hours of ``keys`` keys."""
    with tempfile.TemporaryDirectory() as folder, patch.object(cached_table, "BELIEVED", 0.0):
        hours, keys = int(sizes["intervals"]), int(sizes["keys"])
        tables = Hours(Path(folder), hours, keys)
        spent: dict[str, list[float]] = {}

        def timed(name: str, act: Callable[[], Any]) -> None:
            before = time.process_time()
            act()
            spent.setdefault(name, []).append(time.process_time() - before)

        def plan() -> None:
            assert not plan_run(tables.pipeline, tables.layout, asked=None, dirty=True).builds

        day = {"start": Hours.name(0), "end": Hours.name(24)}
        manifest_of(tables.layout)
        plan()
        tables.ask(**day)
        for turn in range(AGAIN):
            timed("publish_cpu_s", lambda turn=turn: tables.publish_again(turn))
            timed("manifest_cpu_s", lambda: manifest_of(tables.layout))
            timed("plan_cpu_s", plan)
            timed("day_cpu_s", lambda: tables.ask(**day))
        timed("whole_cpu_s", tables.ask)
        tables.publish_again(0)
        timed("whole_cpu_s", tables.ask)
        return {name: median(each) for name, each in spent.items()} | {"process_mb": peak_mb()}
