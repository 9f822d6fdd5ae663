"""What makes a number wrong is found by chance too: lives find each of these mutants, whatever test was made for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.mutants.test_mutants import PATCHES, Patch, mutated

ROOT = Path(__file__).parents[2]
FOUND = (
    "accepted_and_served_all_the_same",
    "block_ends_at_a_lost_epoch",
    "bounds_of_decimals_through_a_double",
    "broken_tail_is_left",
    "carry_dropped_on_merge",
    "certified_with_copies",
    "copy_is_joined",
    "dead_epochs_told_by_files",
    "decimals_through_a_double",
    "decisions_in_the_newest_commit",
    "fence_tried_once",
    "late_row_in_index_and_master",
    "left_row_matched_twice",
    "looks_back_by_count",
    "lost_epochs_stay_in_the_ledger",
    "lost_slices_are_claimed",
    "names_of_ours_in_a_users_way",
    "old_left_rows_are_not_joined",
    "own_commit_taken_for_anothers",
    "serving_current_beyond_the_frontier",
    "view_goes_on_before_it_is_built",
    "view_takes_the_epoch_that_restates",
)
"""One for each known way to a wrong number."""
LIVES = 10
"""Lives for each: most mutants are found by the first or second, so that all take about six minutes of CPU."""


def test_what_lives_find_is_there() -> None:
    """A mutant by another name would be found by nobody."""
    assert set(FOUND) <= {*PATCHES}


@pytest.mark.faults
@pytest.mark.parametrize("name", FOUND)
def test_lives_find_a_mutant(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A generator that misses what was wrong once would miss the next of its kind."""
    patch = Patch.read(name)
    paths = [str(mutated(patch, tmp_path)), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.lives", "--cpu", "inf", "--lives", str(LIVES), "--shrink", "0"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"^after (\d+) s of CPU\n(seed \d+): (.*)", done.stdout, re.MULTILINE)
    assert found, f"No life shows that: {patch.what}\n{done.stdout}\n{done.stderr}"
    with capsys.disabled():
        print(f"\n{name}: {found[2]}, after {found[1]} s of CPU: {found[3][:200]}")
