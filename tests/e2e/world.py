"""A warehouse of flights with two January days, as the stream leaves it, and what runs over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.ports import free_ports

from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.local.flights import Span, read_flights
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import parse_moment
from seamline.serve.read import read
from seamline.spark.stream.epoch_writer import Writer

ROOT = Path(__file__).parents[2]
DAYS = ["2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"]
LANE = Lane("T", 0)


class Resident:
    """A resident driver in a home of its own, which builds of any warehouse may use."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_ports()
        self.settings = {
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_CONNECT_PORT": str(self.port),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }
        done = seamline("driver", "start", **self.settings)
        assert done.returncode == 0, done.stderr
        self.token = (home / "streams" / "_driver" / "token").read_text()

    def stop(self) -> None:
        """End it, and be sure that it has ended."""
        done = seamline("driver", "stop", **self.settings)
        assert done.returncode == 0, done.stderr

    @property
    def url(self) -> str:
        """Its address, for SPARK_REMOTE."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def connection(self) -> str:
        """The Spark connection that means it, for Airflow."""
        address = {"host": "localhost", "port": self.port, "password": self.token}
        return json.dumps({"conn_type": "spark_connect", **address})


class World:
    """The tables, a stream of this process without Spark, and the settings of all that runs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.definition = home / "pipelines" / "flights.py"
        self.definition.parent.mkdir()
        self.definition.write_text((ROOT / "include" / "pipelines" / "flights.py").read_text())
        self.layout = Layout(home / "warehouse", "flights")
        self.settings = {
            "GX_ANALYTICS_ENABLED": "false",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "include"),
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_PIPELINES": str(self.definition.parent),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
        }
        self.sent = self.held = self.token = 0
        self.watermark = "2013-01-03T06:00"
        self.send(read_flights(Span(parse_moment("2013-01-01"), parse_moment("2013-01-03"))))

    @property
    def pipeline(self) -> CompiledPipeline:
        """The definition as it is now."""
        return load_catalog(self.definition.parent).pipeline("flights")

    def send(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Hold one epoch, an edge, of these events, by the shipped kernel and writer.

        The writer does not outlive it: a process that is forked beside an open one dies of a signal.
        """
        values = [json.dumps(event).encode() for event in events]
        self.token += 1
        writer = Writer(self.layout, self.pipeline, self.token)
        number = writer.take_number()
        result = run(
            [raw(values, self.held)],
            KernelConfig(
                pipeline=self.pipeline,
                topic_ids={"flights.departures": LANE.topic_id},
                token=self.token,
                epoch=number,
                committed={},
                views=writer.current,
                master=writer.master.table.root,
                quarantine=writer.quarantine.root,
            ),
        )
        epoch = Epoch(
            number=number,
            token=self.token,
            committed_at=datetime.now(UTC),
            record_version=self.pipeline.record_version,
            edge=True,
            ranges=(OffsetRange(LANE, self.held, self.held + len(values)),),
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            watermark=parse_moment(self.watermark),
        )
        self.sent += len(values)
        writer.commit(epoch, result, writer.current)
        self.held += len(values)

    def late(self, day: str, *, watermark: str = "") -> None:
        """Hold an epoch of one flight that nobody has seen yet; ``watermark`` moves it, so that this is later."""
        self.watermark = watermark or self.watermark
        event = {"carrier": "UA", "flight": 9000 + self.sent, "origin": "EWR", "sched_dep": day}
        self.send([event])

    def seamline(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ours."""
        return seamline(*words, **{**self.settings, **settings})

    def published(self) -> dict[str, str]:
        """Return the generation that is served, by interval."""
        manifest = ManifestTable.ensure(self.layout).read()
        return {interval: found.generation for (_, interval), found in manifest.published.items()}

    def answer(self) -> list[dict[str, Any]]:
        """Read the merged answer."""
        return plain(
            read(
                "flights.delay_by_carrier",
                warehouse=self.layout.warehouse,
                definitions=self.definition.parent,
            )
        )


def seamline(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours."""
    command = [sys.executable, "-m", "seamline.cli", *words]
    return subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )


def raw(values: list[bytes], first: int) -> pa.RecordBatch:
    """Make raw Kafka rows as Spark hands them over."""
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.nulls(count, pa.string()),
            "topic": pa.array(["flights.departures"] * count),
            "partition": pa.array([LANE.partition] * count, pa.int32()),
            "offset": pa.array(range(first, first + count), pa.int64()),
            "timestamp": pa.array([datetime(2013, 1, 3, tzinfo=UTC)] * count, pa.timestamp("us", "UTC")),
        }
    )


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows in one order, with the columns that every reader has."""
    names = ["carrier", "window_start", "flights", "departed", "delay", "mean_delay", "p95_delay", "planes"]
    rows = table.select(names).to_pylist()
    return sorted(rows, key=lambda row: (row["carrier"], row["window_start"]))
