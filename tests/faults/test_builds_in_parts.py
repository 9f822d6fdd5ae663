"""A worker is killed in each stage of a build that goes by parts: it is tried again, or fails; nothing is doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.shop import Sale, Shop

ATTEMPT = "2026-01-01T00-00-00-{}"
POINTS = ("hashed", "sorted", "compared", "partials", "merged")
TRIED_AGAIN, ONCE = "local[2,8]", "local[2]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a day of sales in many files; every fifth is there twice."""
    shop = Shop(tmp_path_factory.mktemp("shop"))
    for first in range(0, 240, 20):
        numbers = [*range(first, first + 20), *range(max(first - 40, 0), first, 5)]
        shop.epoch([Sale(number * 5, customer=f"c{number % 17}", id=number) for number in numbers])
    return shop.warehouse


def build(folder: Path, name: str, master: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Build in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.rig.build_in_parts", str(folder), ATTEMPT.format(name), master],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Read what a build says."""
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    """Build without a fault."""
    found = answer(build(folder, "calm", ONCE))
    assert found["failed"] == 0
    [(read, duplicates)] = found["counts"].values()
    assert (read - duplicates, found["rows"]) == (240, 240)
    return found


@pytest.mark.parametrize("point", POINTS)
def test_what_a_killed_worker_did_is_done_again(folder: Path, expected: dict[str, Any], point: str) -> None:
    """Each worker dies of its third time there, and what it wrote before that stays: only what is named counts."""
    found = answer(build(folder, f"{point}-whole", TRIED_AGAIN, SEAMLINE_FAIL=f"{point}:3:worker"))
    assert found["failed"] > 0
    assert {**found, "failed": 0} == expected


@pytest.mark.parametrize("point", POINTS)
def test_a_build_that_is_not_tried_again_commits_nothing(folder: Path, point: str) -> None:
    """Where each trial of a task dies the build fails, and no file of it is in the table."""
    died = build(folder, f"{point}-dies", ONCE, SEAMLINE_FAIL=f"{point}:1:worker")
    assert died.returncode != 0
    logs = (folder / "shop").glob("**/_delta_log/*.json")
    assert not any(ATTEMPT.format(f"{point}-dies") in each.read_text() for each in logs)
