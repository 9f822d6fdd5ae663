"""Shards of the slow suite, and a file of what has passed, so that a run which was cut short can go on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import pytest
from tests.faults.rig.trial import Results

FAULTS = Path(__file__).parent / "faults"


def is_slow(item: pytest.Item) -> bool:
    """Return whether a test is one of ``make faults``."""
    return FAULTS in item.path.parents or item.get_closest_marker("faults") is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out other shards, and with --resume what has passed."""
    first, count = map(int, config.getoption("--shard").split("/"))
    done = {row["test"] for row in results().rows()} if config.getoption("--resume") else set()
    mine = [item for item in items if is_slow(item)]
    left = {item for at, item in enumerate(mine) if at % count != first - 1 or item.nodeid in done}
    if mine:
        # As it is now, whatever becomes of the files meanwhile.
        read_revision()
    config.hook.pytest_deselected(items=sorted(left, key=lambda item: item.nodeid))
    items[:] = [item for item in items if item not in left]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remember a test that has passed, with what its trial has to tell."""
    report = yield
    if report.when == "call" and report.passed and is_slow(item):
        made = getattr(item, "trial", None)
        results().add({"test": item.nodeid, "revision": read_revision(), **(made.row() if made else {})})
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print every figure that trials have measured, over their seeds, where the slow suite is what was asked for."""
    asked = config.option.markexpr == "faults" or any(FAULTS.name in each for each in config.args)
    if asked and (figures := results().figures()):
        terminalreporter.section("figures of what has passed, in seconds where nothing else is said")
        terminalreporter.write_line(f"revision: {', '.join(results().revisions())}")
        for name, values in figures.items():
            terminalreporter.write_line(
                f"{name}: n {len(values)}, p50 {median(values):.2f}, max {max(values):.2f}"
            )


@cache
def read_revision() -> str:
    """Return the revision of this checkout, with a plus if files were changed; empty if it has none."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
        cwd=FAULTS,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip()


def results() -> Results:
    """The file of what has passed."""
    folder = Path(os.environ.get("SEAMLINE_FAULTS", ".seamline/faults"))
    return Results(folder / "results.jsonl")
