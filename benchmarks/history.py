"""What a start, a plan, a page, an answer, a certificate and an audit cost by the number of epochs there have been.

    python -m benchmarks.history [--sizes 1000,100000,2000000] [--keep FOLDER]

Each is a process of its own over a warehouse that ``benchmarks.past`` has made: CPU seconds and the largest resident
memory, imports included, the best of three. The day that is asked about has equally many epochs at each size.
Logs keep the entries that their retention leaves of an epoch a second: an hour of the ledger's, a day of the others'.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.past import BEGIN, DAY, DAYS, LANE, RUN, Past
from benchmarks.results import Results
from seamline.model.time.intervals import Interval

SPAN = Interval(BEGIN + (DAYS - 2) * DAY, BEGIN + (DAYS - 1) * DAY)
ROUNDS = 3


def start(past: Past) -> object:
    """Do what a driver does before it reads: without Spark and Kafka."""
    from seamline.lake.log.epoch_log import read_condensed_log
    from seamline.model.compile.lookups.named_versions import in_force
    from seamline.model.protocol.holes import find_gaps, to_register
    from seamline.spark.stream.epoch_writer import Writer
    from seamline.spark.stream.progress import Progress

    log = read_condensed_log(past.layout)
    find_gaps(log, {LANE: 0})
    in_force(log, past.compiled.record_version)
    writer = Writer(past.layout, past.compiled, int(time.time()))
    ledger = writer.repair_ledger()
    to_register(ledger, [])
    return Progress.resume(ledger, {LANE: 0}, datetime.now(UTC)).epoch


def answer(past: Past) -> object:
    """Answer for the day."""
    from seamline.lake.read.merged_read import read_merged_answer as read
    from seamline.model.protocol.read_request import ReadRequest

    asked = ReadRequest(start=SPAN.start, end=SPAN.end)
    return read(past.compiled, past.view, past.layout, asked).table.num_rows


def plan(past: Past) -> object:
    """Plan the day, and what is dirty."""
    from seamline.lake.publish.planning import plan_run

    return len(plan_run(past.compiled, past.layout, asked=SPAN, dirty=True).builds)


def status(past: Past) -> object:
    """Describe the status."""
    from seamline.serve.pipeline_status import status_of

    return status_of(past.compiled, past.layout)[1]


def page(past: Past) -> object:
    """Read what the stream's page shows."""
    from seamline.lake.log.epoch_log import newest_epochs
    from seamline.serve.completeness import list_completeness
    from seamline.serve.refused_records import list_refusals

    list_completeness(past.compiled, past.layout)
    newest_epochs(past.layout, 60)
    return list_refusals(past.compiled, past.layout)[0].count


def certify(past: Past) -> object:
    """Certify the day."""
    from seamline.quality.certify import certify_run

    return [each.good for each in certify_run(past.compiled, past.layout, RUN)]


def audit(past: Past) -> object:
    """Audit the day, Kafka's answer made up."""
    from seamline.kafka.topic_ends import TopicEnds
    from seamline.supervisor import auditing

    ends = TopicEnds(datetime.now(UTC), {"t": "sales"}, {LANE: 0}, {LANE: past.start(past.epochs)})
    auditing.ask_source_ends = lambda *_, **__: ends
    auditing.read_airflow_connection = lambda *_, **__: None  # type: ignore[assignment, return-value]
    found = auditing.audit(past.compiled, past.layout, span=SPAN)
    return found.passed, found.intervals[SPAN.id].rows


WORK: dict[str, Callable[[Past], object]] = {
    each.__name__: each for each in (start, answer, plan, status, page, certify, audit)
}


def child(name: str, folder: Path, epochs: int) -> None:
    """Do one thing and say what it cost."""
    began = time.perf_counter()
    said = WORK[name](Past(folder, epochs))
    wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    # What getrusage calls the largest counts the process that this one was forked from.
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    print(json.dumps({"wall": wall, "cpu": cpu, "mb": int(peak.split()[1]) / 1024, "said": str(said)}))


def measured(name: str, folder: Path, epochs: int) -> dict[str, Any]:
    """Run one thing in processes of its own, and give the cheapest run."""
    command = [sys.executable, "-m", "benchmarks.history", "--child", name, "--keep", str(folder)]
    command += ["--sizes", str(epochs)]
    runs = []
    for _ in range(ROUNDS):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return min(runs, key=lambda run: run["cpu"])


def table(figures: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Write the figures as a table of Markdown."""
    sizes = list(figures)
    lines = ["| | " + " | ".join(f"{int(size):,} epochs" for size in sizes) + " | last to first |"]
    lines.append("| --- |" + " ---: |" * (len(sizes) + 1))
    for name in WORK:
        runs = [figures[size][name] for size in sizes]
        cells = [f"{run['cpu']:.2f} s, {run['mb']:.0f} MB" for run in runs]
        ratio = f"{runs[-1]['cpu'] / runs[0]['cpu']:.2f}, {runs[-1]['mb'] / runs[0]['mb']:.2f}"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    """Make the warehouses and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,100000,2000000")
    parser.add_argument("--keep", type=Path, help="Make the warehouses there, or use those that are there.")
    parser.add_argument("--child", choices=WORK, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    if args.child:
        child(args.child, args.keep, sizes[0])
        return
    print(machine())
    figures: dict[str, dict[str, dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as made:
        for size in sizes:
            folder = (args.keep or Path(made)) / str(size)
            if not folder.exists():
                began = time.perf_counter()
                Past(folder, size).make()
                print(f"{size:,} epochs made in {time.perf_counter() - began:.0f} s")
            figures[str(size)] = {name: measured(name, folder, size) for name in WORK}
            for name, run in figures[str(size)].items():
                print(
                    f"{size:>9} {name:8} {run['cpu']:6.2f} s CPU {run['wall']:6.2f} s {run['mb']:6.0f} MB {run['said']}"
                )
    print(table(figures))
    Results("history").write(figures)


if __name__ == "__main__":
    main()
