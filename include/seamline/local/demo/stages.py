"""What a demo does, stage after stage."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.local.demo import report
from seamline.local.demo.next_steps import list_next_steps
from seamline.local.demo.options import DAY, Options
from seamline.local.demo.scene import Scene, name_from_here
from seamline.local.flights import Span, replay_flights
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import NotFound, SetupError
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_moving_ranges
from seamline.model.time.intervals import Interval, floor_to, format_utc_instant, parse_moment
from seamline.orchestration.airflow_api import AirflowApi

DAGS = ("flights__batch", "flights__audit", "flights__upkeep", "flights__stream", "flights__import")
BATCH, AUDIT = DAGS[:2]
START = parse_moment("2013-01-01")
PARTITIONS = 4
KEPT = {"retention.ms": "-1", "segment.ms": str(100 * 366 * 24 * 3_600_000)}
"""Settings of a topic whose records are of the past, by their timestamps: Kafka would delete them within minutes."""


class Demo:
    """The stages of one demo and what they share."""

    def __init__(self, options: Options, scene: Scene | None = None) -> None:
        self.options, self.scene = options, scene or Scene(options)
        self.layout, self.say = self.scene.layout, self.scene.print_progress

    @property
    def journal(self) -> Path:
        """The generator's own record of what it sent."""
        return self.options.home / "journal.parquet"

    def run(self) -> int:
        """Run every stage; return the exit code."""
        pipeline = load_pipeline(self.scene.definitions, "flights")
        topic = pipeline.definition.topics[0]
        with self.scene.broker() as connection, self.scene.airflow() as api:
            with TopicAdmin(connection) as admin:
                admin.create_topic(topic, PARTITIONS, config=KEPT)
            self.say(f"topic {topic} has {PARTITIONS} partitions")
            wait_for_condition("Airflow to read the DAGs", lambda: not list_missing_dags(api), 120)
            for dag in DAGS:
                api.unpause(dag)
            self.await_stream()
            self.replay(connection, topic, api)
            self.await_drained(connection, topic)
            self.keep_answer("speed_before", "merged")
            self.batch(api, Interval(START, self.options.end), "all days that are closed")
            if self.options.backfill_days:
                self.backfill(api)
            self.dirty(api)
            self.audit(api)
            for side in ("merged", "batch", "speed"):
                self.keep_answer(side, side)
            self.keep_answer("airports", "merged", view="delay_by_airport")
            found = self.write_report(pipeline)
            right = self.verify(connection, topic)
            if not self.options.exit:
                self.show_next_steps(found)
                wait_for_interrupt()
        return 0 if right else 1

    def write_report(self, pipeline: CompiledPipeline) -> report.Report:
        """Write the report, and say where it is."""
        file = self.options.home / "report.txt"
        found = report.write_demo_report(pipeline, self.layout, file)
        self.say(
            f"{found.rows:,} served rows of {found.days} days; the numbers are in {name_from_here(file)}"
        )
        return found

    def show_next_steps(self, found: report.Report) -> None:
        """Print what to look at while everything is up."""
        print()
        for line in list_next_steps(self.scene.url, self.scene.exports, found.told):
            print(line)
        print(f"\nAirflow's login is admin / {self.scene.password}. Ctrl-C stops everything.", flush=True)

    def await_stream(self) -> None:
        """Wait until the reconcile DAG has brought the stream up."""
        heartbeat = self.options.home / "streams" / "flights" / "driver.json"
        wait_for_condition("the stream to come up", heartbeat.exists, 240)
        self.say("the stream is up, started by the DAG flights__stream")

    def replay(self, connection: KafkaConnection, topic: str, api: AirflowApi) -> None:
        """Send the flights; build what has closed when half of them are through."""
        work = multiprocessing.get_context("spawn").Process(
            target=run_replay_process,
            args=(connection, topic, self.journal, self.options.seconds, self.options.until),
            daemon=True,
        )
        work.start()
        self.say(f"replaying the flights in about {self.options.seconds:.0f} s")
        half = floor_to(START + (self.options.end - START) * 0.4, DAY)
        built = self.options.seconds < 60
        with report.show_epoch_progress() as show:
            while work.is_alive():
                work.join(1.0)
                last = newest_ledger_epoch(self.layout)
                if last is None or last.watermark is None:
                    continue
                show(last)
                if not built and last.edge and last.watermark >= half:
                    built = True
                    api.trigger(BATCH, range_conf(Interval(START, half), "closed while replaying"))
                    self.say(f"asked for the days up to {format_utc_instant(half)} while the replay goes on")
        if work.exitcode:
            raise SetupError(f"The replay ended with code {work.exitcode}.", hint="see the lines above.")
        self.say("every flight is sent")

    def await_drained(self, connection: KafkaConnection, topic: str) -> None:
        """Wait until the stream has read the topic to its end, and an edge stands there."""
        with TopicAdmin(connection) as admin:
            ends = admin.end_offsets(topic)

        def drained() -> bool:
            last = newest_ledger_epoch(self.layout)
            if last is None or last.watermark is None:
                return False
            master = Master.open(self.layout)
            if master.edge != master.epoch:
                return False
            read = sum(
                len(part) for epoch in list_ledger_epochs(self.layout) for part in list_moving_ranges(epoch)
            )
            return read == sum(ends.values()) and last.watermark >= self.options.end

        wait_for_condition("the stream to read everything", drained, 600)
        self.say(f"the speed layer has all {sum(ends.values()):,} records; no batch has been needed for that")

    def batch(self, api: AirflowApi, span: Interval, reason: str) -> None:
        """Build a range of days in one run of the batch DAG."""
        run = api.trigger(BATCH, range_conf(span, reason))
        self.finish(
            api,
            run,
            f"days {format_utc_instant(span.start)} to {format_utc_instant(span.end)} built in one run",
        )

    def backfill(self, api: AirflowApi) -> None:
        """Rebuild the last closed days with Airflow's own command."""
        first, last = self.options.end - self.options.backfill_days * DAY, self.options.end - DAY
        words = (
            "--from-date",
            f"{first:%Y-%m-%d}",
            "--to-date",
            f"{last:%Y-%m-%d}",
            "--max-active-runs",
            "1",
        )
        self.say(f"$ airflow backfill create --dag-id {BATCH} {' '.join(words)}")
        self.create_backfill(*words)
        api.await_backfill(BATCH, timeout=900)
        for run in api.runs(BATCH, "backfill"):
            self.require(str(run["dag_run_id"]), str(run["state"]))
        self.say(f"{self.options.backfill_days} days rebuilt by airflow backfill")

    def create_backfill(self, *words: str) -> None:
        """Run Airflow's command; SetupError if it refuses."""
        done = self.scene.standalone.backfill(BATCH, *words)
        if done.returncode:
            raise SetupError(
                f"Airflow refused the backfill: {done.stderr.strip()[-2000:]}",
                hint=f"see its pages at {self.scene.url}.",
            )

    def dirty(self, api: AirflowApi) -> None:
        """Rebuild what late flights have made dirty."""
        run = api.trigger(BATCH, {"reason": "late flights"})
        self.finish(api, run, "dirty days rebuilt")

    def audit(self, api: AirflowApi) -> None:
        """Compare Kafka, ledger, log and views."""
        run = api.trigger(AUDIT, {})
        self.finish(api, run, "audited: Kafka, ledger, master, slices and generations agree", dag=AUDIT)

    def finish(self, api: AirflowApi, run: str, done: str, *, dag: str = BATCH) -> None:
        """Wait for a run and say how it ended."""
        self.require(run, api.await_run(dag, run, timeout=900), dag=dag)
        self.say(done)

    def require(self, run: str, state: str, *, dag: str = BATCH) -> None:
        """Require that a run has succeeded; SetupError if not."""
        if state != "success":
            raise SetupError(
                f"Run {run} of {dag} ended as {state}.", hint=f"see its log at {self.scene.url}."
            )

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
        command.append(str(self.scene.warehouse))
        return subprocess.run(command, check=False, env=os.environ).returncode == 0


def run_replay_process(
    connection: KafkaConnection, topic: str, journal: Path, seconds: float, until: str
) -> None:
    """Replay in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = parse_moment(until) if until else None
    replay_flights(connection, topic, PARTITIONS, journal, seconds=seconds, span=Span(end=end))


def range_conf(span: Interval, reason: str) -> dict[str, str]:
    """Fill in the batch DAG's form."""
    return {"from": format_utc_instant(span.start), "to": format_utc_instant(span.end), "reason": reason}


def list_ledger_epochs(layout: Layout) -> list[Epoch]:
    """List the ledger, empty before there is one."""
    return Ledger.ensure(layout).read() if Ledger.exists(layout) else []


def newest_ledger_epoch(layout: Layout) -> Epoch | None:
    """Return the newest ledger row."""
    found = list_ledger_epochs(layout)
    return found[-1] if found else None


def list_missing_dags(api: AirflowApi) -> list[str]:
    """List the DAGs that Airflow has not parsed yet; SetupError if it cannot."""
    if errors := api.import_errors():
        raise SetupError(
            f"Airflow cannot load the DAGs.\n{errors[0]}", hint="fix the error in the last line."
        )
    found = []
    for dag in DAGS:
        try:
            api.dag(dag)
        except NotFound:
            found.append(dag)
    return found


def wait_for_condition(what: str, done: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition; SetupError when it does not come about."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise SetupError(
                f"Timed out after {seconds:.0f} s of waiting for {what}.",
                hint="see the logs in the demo's folder.",
            )
        time.sleep(0.5)


def wait_for_interrupt() -> None:
    """Stay until Ctrl-C or SIGTERM."""
    try:
        signal.pause()
    except KeyboardInterrupt:
        print(flush=True)
