"""What the figures were measured on, and percentiles."""

from __future__ import annotations

import os
import platform
import shutil
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version

import psutil

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGES = ("pyspark", "delta-spark", "deltalake", "duckdb", "apache-airflow", "kafka-python")


def machine() -> str:
    """Say what machine and versions these are, in one line each."""
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f}, {system}\n{versions}"


def chromium() -> str | None:
    """Find the Chromium on PATH; None where there is none."""
    return next((place for name in CHROMIUMS if (place := shutil.which(name))), None)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def family(pid: int) -> list[psutil.Process]:
    """List a process and its descendants."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu_seconds(pid: int) -> float:
    """Add up the CPU seconds of a process, its living descendants and those it has waited for."""
    total = 0.0
    for process in family(pid):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its descendants in MB, shared pages counted by share where known."""
    total = 0
    for process in family(pid):
        try:
            found = process.memory_full_info()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        total += getattr(found, "pss", found.rss)
    return total / 2**20


def names(known: Iterable[str]) -> Callable[[str], str]:
    """Make a type for argparse: some of the ``known`` names, with commas between; none is all of them."""
    there = list(known)

    def some(text: str) -> str:
        if unknown := [name for name in text.split(",") if text and name not in there]:
            raise ArgumentTypeError(f"there is no {unknown[0]!r}; there are: {', '.join(there)}")
        return text

    return some
