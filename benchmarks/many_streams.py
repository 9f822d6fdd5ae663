"""Many pipelines in one Airflow for an hour, a few of whose streams live: python -m benchmarks.many_streams

    [--pipelines 200] [--streams 6] [--rate 50] [--minutes 60]

A broker, a standalone Airflow (SQLite, LocalExecutor), the definitions of all pipelines, each in a file of its own,
and `seamline__reconcile` every two minutes, as shipped. The live streams are started by their DAGs and get ``rate``
events a second each; the others were stopped. In the middle one stream's supervisor and driver are killed: reconcile
brings them back. Prints how long runs of reconcile take, what Airflow and the streams cost (CPU seconds a minute, MB),
how long a record takes until it is counted (p50, p99), and whether each record is counted once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil
from confluent_kafka import Producer
from deltalake import DeltaTable
from tests.ports import free_ports

from benchmarks.machine import machine, memory_mb, percentile
from benchmarks.many_pipelines import DEFINITION
from benchmarks.results import Results
from benchmarks.sampler import Sampler
from benchmarks.views import ROOT
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout, locate_tables
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.local.airflow import AirflowStandalone
from seamline.local.broker import Broker
from seamline.model.errors import NotFound
from seamline.model.protocol.offsets import Lane
from seamline.orchestration.airflow_api import AirflowApi
from seamline.supervisor.outside import stop_all

RECONCILE = "seamline__reconcile"
LIVE = '    stream=Stream(memory="600m", master="local[1]"),\n'
WITHIN = 600.0
LOOK_EVERY, MEMORY_EVERY = 2.0, 15


@dataclass
class Hour:
    """What was seen."""

    sent: Counter[str] = field(default_factory=Counter)
    fresh: list[float] = field(default_factory=list)
    """Seconds from a record's sending to the epoch that has it."""
    back: float = 0.0
    """Seconds until a killed stream had counted what came after."""


def main(argv: list[str]) -> int:
    """Run, print and keep; 0 if everything was counted once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_streams", description=__doc__)
    parser.add_argument("--pipelines", type=int, default=200)
    parser.add_argument("--streams", type=int, default=6)
    parser.add_argument("--rate", type=int, default=50, help="events a second of each stream")
    parser.add_argument("--minutes", type=float, default=60)
    asked = parser.parse_args(argv)
    if min(asked.pipelines, asked.streams, asked.rate, asked.minutes) <= 0:
        parser.error("each number is above zero")
    if asked.streams > asked.pipelines:
        parser.error("--streams: a stream is of one of --pipelines")
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(prefix="many-streams") as folder:
        home = Path(folder)
        names = write_definitions(home / "pipelines", asked.pipelines)
        live = names[:: max(len(names) // asked.streams, 1)][: asked.streams]
        with services(home, names, live) as (api, connection, airflow):
            figures, wrong = spend(api, connection, airflow, live, asked.rate, asked.minutes * 60)
    print(json.dumps(figures, indent=1), *wrong, sep="\n", flush=True)
    Results("many_streams").write(figures)
    return 1 if wrong else 0


def write_definitions(folder: Path, count: int) -> list[str]:
    """Write a file for each pipeline; return their names."""
    folder.mkdir()
    names = [f"orders_{number:05d}" for number in range(count)]
    for name in names:
        text = DEFINITION.format(name=name).replace("Rule, Tumbling", "Rule, Stream, Tumbling")
        (folder / f"{name}.py").write_text(text.replace("    batch=Batch", f"{LIVE}    batch=Batch"))
    return names


@contextmanager
def services(
    home: Path, names: list[str], live: list[str]
) -> Iterator[tuple[AirflowApi, KafkaConnection, psutil.Process]]:
    """Run a broker and an Airflow in which all streams but the live ones were stopped."""
    broker = Broker(home / "kafka", *(free_ports(2) + each for each in range(2)))
    port = free_ports(3)
    os.environ.update(
        SEAMLINE_HOME=str(home / "state"),
        SEAMLINE_PIPELINES=str(home / "pipelines"),
        SEAMLINE_WAREHOUSE=str(home / "warehouse"),
        SEAMLINE_RECONCILE_SECONDS="120",
        AIRFLOW_CONN_KAFKA_DEFAULT=json.dumps(
            {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.connection.brokers}}
        ),
    )
    for name in {*names} - {*live}:
        control = ControlTable.ensure(locate_tables(name))
        control.want(Desired.STOPPED, actor="benchmark", reason="", now=datetime.now(UTC))
    told = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("SEAMLINE_", "AIRFLOW_CONN_KAFKA"))
    }
    # As Airflow has it by default: a demo's ten seconds are for one pipeline.
    told["AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL"] = "30"
    airflow = AirflowStandalone(home / "airflow", port, root=ROOT, env=told)
    broker.start()
    try:
        with TopicAdmin(broker.connection) as admin:
            for name in live:
                admin.create_topic(name, 2)
        airflow.start()
        assert airflow._child  # noqa: SLF001 - what is measured
        yield airflow.api, broker.connection, psutil.Process(airflow._child.pid)  # noqa: SLF001
    finally:
        airflow.stop()
        stop_all()
        broker.stop()


def spend(
    api: AirflowApi,
    connection: KafkaConnection,
    airflow: psutil.Process,
    live: list[str],
    rate: int,
    seconds: float,
) -> tuple[dict[str, float], list[str]]:
    """Start the streams, let the time pass, and say what it cost and what is wrong."""
    began = time.monotonic()
    wait_for(lambda: all(has_dag(api, f"{name}__stream") for name in live), "the DAGs")
    for name in live:
        api.unpause(f"{name}__stream")
    wait_for(lambda: all(Master.exists(locate_tables(name)) for name in live), "the streams")
    up = time.monotonic() - began
    hour, over = Hour(), threading.Event()
    sender = threading.Thread(target=send, args=(connection, live, rate, hour, over), daemon=True)
    with TopicAdmin(connection) as admin:
        ids = {name: admin.topic_id(name) for name in live}
    with Sampler(airflow.pid, pages_once=False) as cost:
        sender.start()
        streams = StreamCost()
        until, middle, drawn = time.monotonic() + seconds, time.monotonic() + seconds / 2, random.Random(1)
        while time.monotonic() < until:
            name = drawn.choice(live)
            took = await_counted(name, ids[name], hour.sent[name])
            hour.fresh.append(took)
            streams.look()
            if not hour.back and time.monotonic() > middle:
                kill_stream(live[0])
                hour.back = await_counted(live[0], ids[live[0]], hour.sent[live[0]] + 2 * rate)
            time.sleep(LOOK_EVERY)
        over.set()
        sender.join()
    for name in live:
        await_counted(name, ids[name], hour.sent[name])
    runs = reconciles(api)
    minutes = seconds / 60
    figures = {
        "seconds until all streams are up": round(up, 1),
        "runs of reconcile": len(runs),
        "failed": sum(not good for _, good in runs),
        "reconcile p50 s": round(percentile([took for took, _ in runs], 0.5), 1),
        "reconcile max s": round(max(took for took, _ in runs), 1),
        "counted after p50 s": round(percentile(hour.fresh, 0.5), 2),
        "counted after p99 s": round(percentile(hour.fresh, 0.99), 2),
        "killed stream back after s": round(hour.back, 1),
        "Airflow CPU s a minute": round((cost.samples[-1][1] - cost.samples[0][1]) / minutes, 1),
        "Airflow MB": round(cost.samples[-1][2]),
        "streams CPU s a minute": round(streams.seconds() / minutes, 1),
        "streams MB": round(streams.mb),
        "records": hour.sent.total(),
    }
    return figures, [line for name in live for line in find_wrong(locate_tables(name), hour.sent[name])]


class StreamCost:
    """CPU seconds and memory of supervisors and drivers, which are no children of Airflow's."""

    def __init__(self) -> None:
        self.used: dict[tuple[int, float], float] = {}
        self.first: dict[tuple[int, float], float] = {}
        self.mb = 0.0
        self.looks = 0

    def look(self) -> None:
        """Look at all of them."""
        mb = 0.0
        for each in list_supervisors():
            try:
                for process in (each, *each.children(recursive=True)):
                    times, who = process.cpu_times(), (process.pid, process.create_time())
                    self.used[who] = times.user + times.system
                    self.first.setdefault(who, self.used[who])
                mb += memory_mb(each.pid) if self.looks % MEMORY_EVERY == 0 else 0
            except psutil.NoSuchProcess:
                continue
        self.mb, self.looks = max(self.mb, mb), self.looks + 1

    def seconds(self) -> float:
        """Return what they have used since each was seen first."""
        return sum(self.used.values()) - sum(self.first.values())


def list_supervisors(name: str = "") -> list[psutil.Process]:
    """List the supervisors of this run, or that of one stream."""
    home = os.environ["SEAMLINE_HOME"]
    found = []
    for each in psutil.process_iter():
        try:
            words = each.cmdline()
            if words[1:3] == ["-m", "seamline.supervisor"] and each.environ().get("SEAMLINE_HOME") == home:
                found += [each] if not name or words[3] == name else []
        except psutil.Error:
            continue
    return found


def kill_stream(name: str) -> None:
    """Kill a supervisor with all that it has started."""
    for each in list_supervisors(name):
        for process in (*each.children(recursive=True), each):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def send(connection: KafkaConnection, live: list[str], rate: int, hour: Hour, over: threading.Event) -> None:
    """Send ``rate`` records a second to each topic, and say how many were."""
    producer = Producer({"bootstrap.servers": connection.brokers, "linger.ms": 5})
    began, due = time.monotonic(), 0
    while not over.wait(0.1):
        last, due = due, int((time.monotonic() - began) * rate)
        for name in live:
            for number in range(last, due):
                row = {
                    "id": f"{number}",
                    "shop": f"{number % 20}",
                    "amount": 1.5,
                    "at": datetime.now(UTC).isoformat(),
                }
                producer.produce(name, json.dumps(row).encode(), partition=number % 2)
        producer.flush()
        for name in live:
            hour.sent[name] = due


def await_counted(name: str, topic_id: str, sent: int) -> float:
    """Wait until an epoch has so many records of a topic; return the seconds it took."""
    began, lanes = time.monotonic(), [Lane(topic_id, partition) for partition in range(2)]
    layout = locate_tables(name)
    wait_for(
        lambda: sum(Master.open(layout).position(lanes).values()) >= sent, f"{name} to count", every=0.05
    )
    return time.monotonic() - began


def wait_for(done, what: str, every: float = 1.0) -> None:
    """Wait for a condition; SystemExit if it does not come about."""
    until = time.monotonic() + WITHIN
    while not done():
        if time.monotonic() > until:
            raise SystemExit(f"Waited {WITHIN:g} s for {what}.")
        time.sleep(every)


def has_dag(api: AirflowApi, name: str) -> bool:
    """Return whether Airflow has read a DAG."""
    try:
        return bool(api.dag(name))
    except NotFound:
        return False


def reconciles(api: AirflowApi) -> list[tuple[float, bool]]:
    """List the newest runs of reconcile that have ended: seconds, and whether each was good."""
    found = []
    for run in api.runs(RECONCILE, "scheduled"):
        if run["end_date"] and run["start_date"]:
            took = datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])
            found.append((took.total_seconds(), run["state"] == "success"))
    return found


def find_wrong(layout: Layout, sent: int) -> list[str]:
    """Say what a master has not once."""
    rows = DeltaTable(str(layout.table("master"))).to_pyarrow_table(columns=["id"])["id"].to_pylist()
    found = Counter(rows)
    wrong = [number for number in range(sent) if found[str(number)] != 1]
    return (
        [f"{layout.pipeline}: {len(wrong)} of {sent} are not there once"]
        if wrong or len(rows) != sent
        else []
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
