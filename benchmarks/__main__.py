"""A suite of benchmarks, section by section, and what they say together.

    python -m benchmarks [--full] [--json] [--resume] [--only drain,batch]

Each section is a program of its own and keeps its figures in .seamline/bench; ``--resume`` leaves out those that are
there. With ``--json`` the last line is one JSON object. Exit code 3: a figure is missing, and null.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.machine import machine, names
from benchmarks.results import Results
from benchmarks.summary import complete, lines, summary

INCOMPLETE = 3


@dataclass(frozen=True)
class Section:
    """A benchmark and how it is called in the short suite and in the full one."""

    name: str
    short: tuple[str, ...] = ()
    full: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "drain",
        ("--records", "5000000", "--only", "seamline,tuned,stateful,flink_only,flink_work"),
        ("--records", "12000000"),
    ),
    Section("freshness", ("--views", "1,20"), ("--views", "1,5,20")),
    Section("batch"),
    Section("builds"),
    Section("airflow_runs"),
    Section("ageing", ("--hours", "1"), ("--hours", "24")),
    Section("web"),
)


def main(argv: list[str]) -> int:
    """Run the sections that are asked for."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the long suite")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--resume", action="store_true", help="keep the sections that were run")
    known = [section.name for section in SECTIONS]
    parser.add_argument("--only", type=names(known), default=",".join(known))
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    wanted = options.only.split(",")
    failed = []
    for section in SECTIONS:
        results = Results(section.name)
        if options.resume and results.file.exists():
            print(f"\n{section.name}: kept from before", flush=True)
            continue
        results.file.unlink(missing_ok=True)
        if section.name in wanted and not ran(section, options.full):
            failed.append(section.name)
    figures = summary({section.name: Results(section.name).read() for section in SECTIONS})
    print("", *lines(figures), sep="\n")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    if options.json:
        print(json.dumps(figures))
    return 1 if failed else 0 if complete(figures) else INCOMPLETE


def ran(section: Section, full: bool) -> bool:
    """Run a section, and tell whether it succeeded."""
    began = time.monotonic()
    print(f"\n== {section.name}", flush=True)
    given = section.full if full else section.short
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{section.name}", *given], check=False)
    print(f"== {section.name}: {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
