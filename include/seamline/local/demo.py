"""`make demo`: a year of flights through a real broker, both layers and Airflow, with one certified answer.

Started as ``python -m seamline.local.demo``; everything it starts it stops, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType

import psutil

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection, resolve
from seamline.lake.layout import Layout
from seamline.lake.ledger import Ledger
from seamline.lake.master import Master
from seamline.local import environment, preflight, report
from seamline.local.airflow import AirflowStandalone
from seamline.local.broker import Broker
from seamline.local.flights import Span, replay
from seamline.model.catalog import load
from seamline.model.epoch import Epoch
from seamline.model.errors import NotFound, SeamlineError, SetupError
from seamline.model.intervals import Interval, floor_to, parse_moment, stamp
from seamline.orchestration.airflow_api import AirflowApi

DAGS = ("flights__batch", "flights__upkeep", "flights__stream")
DAY = timedelta(days=1)
START = parse_moment("2013-01-01")
LAST = parse_moment("2014-01-01")
PARTITIONS = 4
DISK_GB, MEMORY_GB = 4, 6
HOME = Path(".seamline/demo")
KEPT = ("SEAMLINE_JARS",)


@dataclass(frozen=True)
class Options:
    """What a demo is asked to do."""

    home: Path
    exit: bool
    seconds: float
    until: str
    backfill_days: int
    kafka_port: int
    airflow_port: int

    @classmethod
    def parse(cls, argv: list[str]) -> Options:
        """Read the command line."""
        parser = argparse.ArgumentParser(prog="make demo", description="Real flights through both layers.")
        parser.add_argument("--home", type=Path, default=HOME, help="folder of its data")
        parser.add_argument(
            "--exit", action="store_true", help="end by itself; 0 only if the answer is right"
        )
        parser.add_argument("--seconds", type=float, default=120, help="length of the replay")
        parser.add_argument("--until", default="", help="replay only flights before this day (UTC)")
        parser.add_argument("--backfill-days", type=int, default=3, help="closed days to rebuild at the end")
        parser.add_argument("--kafka-port", type=int, default=19092)
        parser.add_argument("--airflow-port", type=int, default=18080)
        found = vars(parser.parse_args(argv))
        return cls(**{**found, "home": found["home"].resolve()})


class Demo:
    """The stages of one demo and what they share."""

    def __init__(self, options: Options, root: Path) -> None:
        self.options = options
        self.root = root
        self.began = time.monotonic()
        self.password = secrets.token_urlsafe(12)
        self.url = f"http://127.0.0.1:{options.airflow_port}"

    def say(self, text: str) -> None:
        """Print one line of progress."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    @property
    def standalone(self) -> AirflowStandalone:
        """Airflow as this demo starts it."""
        home = self.options.home / "airflow"
        port = self.options.airflow_port
        return AirflowStandalone(home, port, root=self.root, password=self.password, env=self.environment())

    def environment(self) -> dict[str, str]:
        """Give the settings under which Airflow, the CLI and the jobs of this demo run."""
        home, brokers = self.options.home, f"127.0.0.1:{self.options.kafka_port}"
        return {
            "SEAMLINE_HOME": str(home),
            "SEAMLINE_WAREHOUSE": str(home / "warehouse"),
            "SEAMLINE_PIPELINES": str(self.root / "include" / "pipelines"),
            "SEAMLINE_AIRFLOW_URL": self.url,
            "SEAMLINE_AIRFLOW_USER": "admin",
            "SEAMLINE_AIRFLOW_PASSWORD": self.password,
            "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(
                {"conn_type": "kafka", "extra": {"bootstrap.servers": brokers}}
            ),
            "GX_ANALYTICS_ENABLED": "false",
            **{name: os.environ[name] for name in KEPT if name in os.environ},
        }

    def check(self) -> None:
        """Refuse a machine on which the demo cannot end well, before anything is started."""
        kafka, airflow = self.options.kafka_port, self.options.airflow_port
        preflight.require_free_ports([kafka, kafka + 1, airflow, airflow + 1, airflow + 2])
        preflight.require_memory(MEMORY_GB)
        preflight.require_disk(self.options.home.parent, DISK_GB)

    def prepare(self) -> None:
        """Remove what an earlier demo left; write the checkout's environment, unless the demo lives elsewhere."""
        clean(self.options.home)
        self.options.home.mkdir(parents=True)
        (self.options.home / "demo.pid").write_text(str(os.getpid()))
        settings = self.standalone.settings()
        if self.options.home == self.root / HOME:
            own = {name: value for name, value in settings.items() if name != "PATH"}
            environment.write_env(self.root, own)
        os.environ.update(environment.environment(self.root) | settings)

    @property
    def layout(self) -> Layout:
        """The tables of the demo's pipeline."""
        return Layout(self.options.home / "warehouse", "flights")

    @property
    def journal(self) -> Path:
        """The generator's own record of what it sent."""
        return self.options.home / "journal.parquet"

    def run(self) -> int:
        """Do everything; give the exit code."""
        pipeline = load(self.root / "include" / "pipelines").pipeline("flights")
        topic = pipeline.definition.source.topics[0]
        with self.broker() as connection, self.airflow() as api:
            with TopicAdmin(connection) as admin:
                admin.create_topic(topic, PARTITIONS)
            self.say(f"topic {topic} has {PARTITIONS} partitions")
            wait("Airflow to read the DAGs", lambda: not missing(api), 120)
            for dag in DAGS:
                api.unpause(dag)
            self.await_stream()
            self.replay(connection, topic, api)
            self.await_drained(connection, topic)
            self.keep_answer("speed_before", "merged")
            self.batch(api, Interval(START, self.end()), "all days that are closed")
            if self.options.backfill_days:
                self.backfill()
            self.dirty(api)
            for side in ("merged", "batch", "speed"):
                self.keep_answer(side, side)
            self.keep_answer("airports", "merged", view="delay_by_airport")
            report.summary(pipeline, self.layout)
            right = self.verify(connection, topic)
            self.say(f"done; Airflow is at {self.url}, login admin / {self.password}")
            if not self.options.exit:
                self.say("other terminals: . .seamline/env ; Ctrl-C stops everything the demo started")
                wait_for_interrupt()
        return 0 if right else 1

    @contextmanager
    def broker(self) -> Iterator[KafkaConnection]:
        """Run a broker for as long as the demo lasts."""
        broker = Broker(self.options.home / "kafka", self.options.kafka_port, self.options.kafka_port + 1)
        try:
            broker.start()
            self.say(f"Kafka is up at 127.0.0.1:{self.options.kafka_port}")
            yield resolve("kafka_default")
        finally:
            broker.stop()

    @contextmanager
    def airflow(self) -> Iterator[AirflowApi]:
        """Run Airflow for as long as the demo lasts, and the streams that its DAGs start."""
        airflow = self.standalone
        try:
            airflow.start()
            self.say(f"Airflow is healthy at {self.url}")
            yield AirflowApi.from_env()
        finally:
            self.say("stopping the stream and Airflow")
            stop_streams(self.layout)
            airflow.stop()

    def await_stream(self) -> None:
        """Wait until the reconcile DAG has brought the stream up."""
        heartbeat = self.options.home / "streams" / "flights" / "driver.json"
        wait("the stream to come up", heartbeat.exists, 240)
        self.say("the stream is up, started by the DAG flights__stream")

    def replay(self, connection: KafkaConnection, topic: str, api: AirflowApi) -> None:
        """Send the flights; build what has closed when half of them are through."""
        work = multiprocessing.get_context("spawn").Process(
            target=send,
            args=(connection, topic, self.journal, self.options.seconds, self.options.until),
            daemon=True,
        )
        work.start()
        self.say(f"replaying the flights in about {self.options.seconds:.0f} s")
        half = floor_to(START + (self.end() - START) * 0.4, DAY)
        built = self.options.seconds < 60
        with report.progress() as show:
            while work.is_alive():
                work.join(1.0)
                last = newest(self.layout)
                if last is None or last.watermark is None:
                    continue
                show(last)
                if not built and last.edge and last.watermark >= half:
                    built = True
                    api.trigger("flights__batch", range_conf(Interval(START, half), "closed while replaying"))
                    self.say(f"asked for the days up to {stamp(half)} while the replay goes on")
        if work.exitcode:
            raise SetupError(f"The replay ended with code {work.exitcode}.", hint="see the lines above.")
        self.say("every flight is sent")

    def await_drained(self, connection: KafkaConnection, topic: str) -> None:
        """Wait until the stream has read the topic to its end, and an edge stands there."""
        with TopicAdmin(connection) as admin:
            ends = admin.end_offsets(topic)

        def drained() -> bool:
            master, last = Master.open(self.layout), newest(self.layout)
            if last is None or last.watermark is None or master.edge != master.epoch:
                return False
            read = sum(len(part) for epoch in epochs(self.layout) for part in epoch.ranges)
            return read == sum(ends.values()) and last.watermark >= self.end()

        wait("the stream to read everything", drained, 600)
        self.say(f"the speed layer has all {sum(ends.values()):,} records; no batch has been needed for that")

    def end(self) -> datetime:
        """Give the end of the last day that closes; the day after, the last with flights, stays open."""
        return parse_moment(self.options.until) - DAY if self.options.until else LAST

    def batch(self, api: AirflowApi, span: Interval, reason: str) -> None:
        """Build a range of days in one run of the batch DAG."""
        run = api.trigger("flights__batch", range_conf(span, reason))
        self.finish(api, run, f"days {stamp(span.start)} to {stamp(span.end)} built in one run")

    def backfill(self) -> None:
        """Rebuild the last closed days with Airflow's own command."""
        first, last = self.end() - self.options.backfill_days * DAY, self.end() - DAY
        command = [
            *("airflow", "backfill", "create", "--dag-id", "flights__batch"),
            *("--from-date", first.strftime("%Y-%m-%d"), "--to-date", last.strftime("%Y-%m-%d")),
            *("--max-active-runs", "1"),
        ]
        self.say(f"$ {' '.join(command)}")
        subprocess.run(command, check=True, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        api = AirflowApi.from_env()
        api.await_backfill("flights__batch", timeout=900)
        self.say(f"{self.options.backfill_days} days rebuilt by airflow backfill")

    def dirty(self, api: AirflowApi) -> None:
        """Rebuild what late flights have made dirty."""
        run = api.trigger("flights__batch", {"reason": "late flights"})
        self.finish(api, run, "dirty days rebuilt")

    def finish(self, api: AirflowApi, run: str, done: str) -> None:
        """Wait for a run of the batch DAG and say how it ended."""
        state = api.await_run("flights__batch", run, timeout=900)
        if state != "success":
            raise SetupError(
                f"Run {run} of flights__batch ended as {state}.", hint=f"its log is at {self.url}."
            )
        self.say(done)

    def keep_answer(self, name: str, side: str, *, view: str = "delay_by_carrier") -> None:
        """Write what `seamline query` answers to a file, for the check."""
        folder = self.options.home / "answers"
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "seamline.cli", "query", f"flights.{view}"]
        command += ["--side", side, "--format", "parquet", "--out", str(folder / f"{name}.parquet")]
        subprocess.run(command, check=True, env=os.environ, stdout=subprocess.DEVNULL)

    def verify(self, connection: KafkaConnection, topic: str) -> bool:
        """Run the check that knows nothing of Seamline."""
        script = Path(__file__).with_name("verify.py")
        command = [sys.executable, str(script), str(self.options.home), connection.brokers, topic]
        return subprocess.run(command, check=False, env=os.environ).returncode == 0


def send(connection: KafkaConnection, topic: str, journal: Path, seconds: float, until: str) -> None:
    """Replay in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = parse_moment(until) if until else None
    replay(connection, topic, PARTITIONS, journal, seconds=seconds, span=Span(end=end))


def range_conf(span: Interval, reason: str) -> dict[str, str]:
    """Fill in the batch DAG's form."""
    return {"from": stamp(span.start), "to": stamp(span.end), "reason": reason}


def epochs(layout: Layout) -> list[Epoch]:
    """List the ledger, empty before there is one."""
    return Ledger.ensure(layout).epochs() if Ledger.exists(layout) else []


def newest(layout: Layout) -> Epoch | None:
    """Give the newest ledger row."""
    found = epochs(layout)
    return found[-1] if found else None


def missing(api: AirflowApi) -> list[str]:
    """List the DAGs that Airflow has not parsed yet; SetupError if it cannot."""
    if errors := api.import_errors():
        raise SetupError(f"Airflow cannot load the DAGs.\n{errors[0]}", hint="mend what the last line says.")
    found = []
    for dag in DAGS:
        try:
            api.dag(dag)
        except NotFound:
            found.append(dag)
    return found


def wait(what: str, done: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition; SetupError when it does not come about."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise SetupError(f"Waited {seconds:.0f} s for {what}.", hint="see the logs in the demo's folder.")
        time.sleep(0.5)


def wait_for_interrupt() -> None:
    """Stay until Ctrl-C or SIGTERM."""
    try:
        signal.pause()
    except KeyboardInterrupt:
        print(flush=True)


def stop_streams(layout: Layout) -> None:
    """End the supervisors that this demo's DAGs started, gracefully."""
    from seamline.supervisor.outside import stop

    stop(layout, timeout=60)


def clean(home: Path) -> None:
    """Remove a demo's data; refuse while its demo runs."""
    pid = home / "demo.pid"
    if pid.exists() and psutil.pid_exists(int(pid.read_text())) and int(pid.read_text()) != os.getpid():
        raise SetupError(
            f"A demo is running (process {pid.read_text()}).", hint="stop it with Ctrl-C in its terminal."
        )
    shutil.rmtree(home, ignore_errors=True)


def interrupted(signum: int, frame: FrameType | None) -> None:
    """Treat SIGTERM as Ctrl-C, so that everything is stopped."""
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run the demo; one clear sentence for what is missing, before anything is started."""
    options = Options.parse(sys.argv[1:] if argv is None else argv)
    demo = Demo(options, Path(__file__).resolve().parents[3])
    signal.signal(signal.SIGTERM, interrupted)
    try:
        demo.check()
        demo.prepare()
        return demo.run()
    except KeyboardInterrupt:
        print("\nstopped", flush=True)
        return 130
    except SeamlineError as error:
        print(f"\n{error}", file=sys.stderr, flush=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
