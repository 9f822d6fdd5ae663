"""A stream that stays up, with a fault every three minutes: what it costs to run one for long.

    python -m benchmarks.soak [--minutes 60] [--every 180] [--upkeep 600] [--rate 200] [--trigger "2 seconds"]
                              [--seed 1] [--outage 0]

Prints, and writes to .seamline/faults/soak.json: epochs and files per hour and how upkeep bounds them, the driver's
memory over time and its slope, every fault with the time to the next epoch, and that every answer a reader saw was
the replay of the log. ``--outage 10`` adds what ten minutes of 5,000 events/s that nobody has read take to drain
while as many go on arriving.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Producer
from tests.faults.rig.checkpoints import lose
from tests.faults.rig.line import Line
from tests.faults.rig.processes import signalled, working_in
from tests.ports import free_ports

from benchmarks import ads
from benchmarks.machine import machine, memory_mb, percentile
from seamline.kafka.admin import TopicAdmin
from seamline.lake.storage.delta_table import Table
from seamline.local.broker import Broker

WARM = 60.0
LOOK_EVERY = 10.0
RATE = 5_000
BATCH = 2_000


@dataclass
class Soak:
    """What was seen: per look (seconds, driver MB, supervisor MB, epoch, files, the driver's age), and per fault."""

    seed: int
    looks: list[tuple[float, float, float, int, int, float]] = field(default_factory=list)
    faults: list[tuple[float, str, float]] = field(default_factory=list)
    upkeep: list[tuple[float, int, int]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


def main(argv: list[str]) -> int:
    """Soak, judge and print; 0 if everything was counted once."""
    parser = argparse.ArgumentParser(prog="make soak", description="A stream that stays up, with faults.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=180, help="seconds between faults")
    parser.add_argument("--upkeep", type=float, default=600, help="seconds between runs of upkeep")
    parser.add_argument("--rate", type=int, default=200, help="events per second meanwhile")
    parser.add_argument("--trigger", default="2 seconds", help="of the stream")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--outage", type=float, default=0, help="minutes of 5,000 events/s to drain at the end"
    )
    options = parser.parse_args(argv)
    print(machine(), f"seed {options.seed}", sep="\n", flush=True)
    soak = Soak(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        broker = Broker(home / "kafka", free_ports(), free_ports())
        broker.start()
        line = Line(home / "line", broker.connection, options.seed, trigger=options.trigger, limit=100_000)
        try:
            if options.minutes:
                run(soak, line, broker, options)
                judge(soak, line)
            if options.outage:
                outage(soak, home / "drain", broker, options.outage)
        finally:
            line.close()
            broker.stop()
            report(soak)
            keep(soak)
    return 0


def keep(soak: Soak) -> None:
    """Write everything down: an hour is not to be lost because of what comes after it."""
    out = Path(os.environ.get("SEAMLINE_FAULTS", ".seamline/faults")) / "soak.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine(), **asdict(soak)}, indent=1))
    print(f"written to {out}")


def run(soak: Soak, line: Line, broker: Broker, options: argparse.Namespace) -> None:
    """Let records flow and things go wrong, look every ten seconds, and judge all of it at the end."""
    chance = random.Random(options.seed)
    line.send(500)
    line.supervise()
    line.await_beyond(-1)
    began = time.monotonic()
    halt = threading.Event()

    def look() -> None:
        while not halt.wait(LOOK_EVERY):
            soak.looks.append((round(time.monotonic() - began, 1), *seen(line)))

    watching = threading.Thread(target=look, daemon=True)
    with line.reader, line.flowing(options.rate):
        watching.start()
        due, kept = began + options.every, began + options.upkeep
        while (now := time.monotonic()) < began + options.minutes * 60:
            if now >= kept:
                kept += options.upkeep
                before = files(line)
                done = line.seamline("upkeep", line.stack.name)
                assert done.returncode == 0, done.stderr
                soak.upkeep.append((round(now - began, 1), before, files(line)))
            if now >= due:
                due += options.every
                name = chance.choice(list(FAULTS))
                epoch = line.stack.epoch()
                over = FAULTS[name](line, broker, chance) or time.monotonic()
                line.await_beyond(epoch + 1)
                took = time.monotonic() - over
                soak.faults.append((round(now - began, 1), name, round(took, 1)))
                print(f"{now - began:7.0f} s  {name}: {took:.1f} s to the next epochs", flush=True)
            time.sleep(1.0)
        soak.figures["minutes"] = round((time.monotonic() - began) / 60, 1)
        soak.figures["epochs"] = line.stack.epoch()
        halt.set()
        watching.join()


def judge(soak: Soak, line: Line) -> None:
    """Stop the stream and require that everything was counted once."""
    line.drained()
    line.stop()
    line.require_clean()
    epochs = line.judge()
    soak.figures["epochs"] = len(epochs)
    soak.figures["records"] = len(line.log)
    soak.figures["answers checked"] = len(line.reader.samples)
    soak.figures["answers asked for"] = line.reader.asked
    soak.figures["reads refused"] = sum(line.reader.refused.values())


def seen(line: Line) -> tuple[float, float, int, int, float]:
    """Look at the memory of driver and supervisor, the epoch, the number of files and the driver's age."""
    beat = line.heartbeat()
    driver = supervisor = age = 0.0
    if beat and beat.driver and beat.driver.alive():
        try:
            driver = memory_mb(beat.driver.pid)
            supervisor = psutil.Process(beat.supervisor.pid).memory_info().rss / 2**20
            age = time.time() - beat.driver.born
        except psutil.NoSuchProcess:
            driver = 0.0
    return round(driver), round(supervisor, 1), line.stack.epoch(), files(line), round(age, 1)


def files(line: Line) -> int:
    """Count the data files that the pipeline's tables name."""
    logs = line.stack.layout.table("").glob("**/_delta_log")
    return sum(len(Table.open(log.parent).actions()) for log in logs)


def kill(*whom: str) -> Callable[[Line, Broker, random.Random], None]:
    """Make the fault that kills parts of the driver."""

    def fault(line: Line, _: Broker, __: random.Random) -> None:
        family = line.family()
        parts = {"jvm": family.jvm, "python": family.driver, "worker": family.workers[0]}
        for each in whom:
            line.kill(parts[each])

    return fault


def freeze(line: Line, _: Broker, chance: random.Random) -> None:
    """Stop everything of the stream for less than the lease lasts, as a swapping machine does."""
    asleep = working_in(line.home)
    signalled(asleep, signal.SIGSTOP)
    time.sleep(chance.uniform(5, 12))
    signalled(asleep, signal.SIGCONT)


def restart_broker(line: Line, broker: Broker, chance: random.Random) -> None:
    """Kill the broker and start it again."""
    broker.kill()
    time.sleep(chance.uniform(1, 15))
    broker.start()


def rob(line: Line, broker: Broker, chance: random.Random) -> None:
    """Take the checkpoint away and kill the driver."""
    family = line.family()
    lose(line.folder, "deleted", chance)
    line.kill(family.jvm)
    line.kill(family.driver)


def kill_supervisor(line: Line, _: Broker, __: random.Random) -> float:
    """Kill the supervisor, and start another as soon as there is room for one, as reconcile does.

    Gives the moment of the kill.
    """
    supervisor = line.supervisors.pop()
    supervisor.kill()
    killed = time.monotonic()
    supervisor.wait()
    while line.heartbeat().supervisor.pid == supervisor.pid:  # type: ignore[union-attr]
        line.supervise()
        time.sleep(5)
        if line.supervisors[-1].poll() is not None:
            line.supervisors.pop()
    return killed


FAULTS: dict[str, Callable[[Line, Broker, random.Random], float | None]] = {
    "JVM killed": kill("jvm"),
    "Python killed": kill("python"),
    "worker killed": kill("worker"),
    "driver killed": kill("jvm", "python"),
    "frozen": freeze,
    "broker killed": restart_broker,
    "checkpoint deleted": rob,
    "supervisor killed": kill_supervisor,
}


def outage(soak: Soak, home: Path, broker: Broker, minutes: float) -> None:
    """Leave a backlog unread, then start the stream and measure how fast it goes down while records arrive."""
    line = Line(home, broker.connection, soak.seed, name="drain", trigger="2 seconds", limit=500_000)
    backlog = int(minutes * 60 * RATE)
    halt = threading.Event()
    arrived = [0]

    def arrive() -> None:
        producer = Producer({"bootstrap.servers": line.kafka.brokers, "linger.ms": 5, "acks": "all"})
        pour(line, producer, backlog)
        arrived[0] = backlog
        ready.set()
        while not halt.wait(BATCH / RATE):
            pour(line, producer, BATCH)
            arrived[0] += BATCH

    ready = threading.Event()
    producing = threading.Thread(target=arrive, daemon=True)
    producing.start()
    ready.wait()
    print(f"{backlog:,} records wait", flush=True)
    began = time.monotonic()
    line.supervise()
    first = line.await_beyond(-1, 600)
    peak = 0.0
    while (lag := arrived[0] - line.stack.offsets_read()) > 2 * 2 * RATE:
        peak = max(peak, seen(line)[0])
        assert time.monotonic() - began < 3600, f"{lag:,} records are still unread"
        time.sleep(2.0)
    took = time.monotonic() - began
    read = line.stack.offsets_read()
    halt.set()
    producing.join()
    line.drained()
    line.stop()
    with TopicAdmin(line.kafka) as admin:
        there = sum(admin.end_offsets(line.topic).values())
    master = Table.open(line.stack.layout.table("master")).handle.to_pyarrow_dataset()
    rows = master.to_table(columns=["_partition", "_offset"])
    unique = rows.group_by(["_partition", "_offset"]).aggregate([]).num_rows
    assert rows.num_rows == unique == there, f"{rows.num_rows} rows, {unique} places, {there} records"
    soak.figures |= {
        "outage: records": backlog,
        "outage: seconds to the first epoch": round(first, 1),
        "outage: seconds until within two triggers": round(took, 1),
        "outage: records/s, start included": round(read / took),
        "outage: records/s, from the first epoch on": round(read / max(took - first, 1e-9)),
        "outage: driver's most MB": peak,
    }
    line.close()


def pour(line: Line, producer: Producer, count: int) -> None:
    """Send plain records quickly, and wait until they are there."""
    for _ in range(count):
        line.work.count += 1
        at = line.work.count
        value = b'{"producer":"p%d","seq":%d,"at":"2024-01-%02dT%02d:00:00Z"}' % (
            at % 500,
            at,
            5 + at % 20,
            at % 24,
        )
        ads.produce(producer, line.topic, value, at % 3)
    producer.flush()


def report(soak: Soak) -> None:
    """Print what was seen."""
    minutes = soak.figures.get("minutes", 0.0)
    hours = max(minutes / 60, 1e-9)
    took = [each[2] for each in soak.faults]
    print(f"\n{len(soak.faults)} faults in {minutes:g} minutes, seed {soak.seed}")
    if took:
        print(f"fault to the next epochs: p50 {percentile(took, 0.5):.1f} s, max {max(took):.1f} s")
    for name, value in soak.figures.items():
        print(f"{name}: {value:,}")
    if soak.looks:
        print(f"epochs per hour: {soak.figures.get('epochs', 0) / hours:,.0f}")
        print(f"files: {soak.looks[-1][4]:,} at the end, {max(look[4] for look in soak.looks):,} at most")
        print(f"driver: {slope(soak, 1):+.1f} MB an hour, at most {max(look[1] for look in soak.looks):,} MB")
        print(f"supervisor: {slope(soak, 2):+.1f} MB an hour")
    for at, before, after in soak.upkeep:
        print(f"upkeep after {at:.0f} s: {before:,} files -> {after:,}")


def slope(soak: Soak, column: int) -> float:
    """Fit a line through a column of the looks at a driver that is warm, and give what it rises by in an hour."""
    points = [(look[0] / 3600, look[column]) for look in soak.looks if look[5] > WARM]
    if len(points) < 2:
        return 0.0
    mean_x, mean_y = (sum(part) / len(points) for part in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
