"""The command line of a trial: what is asked, the folder it may empty, and the figures at the end."""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import statistics
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.composition import ROOT
from tests.cluster.trial import BUILT, COUNTED, FAULTS, OF_CELERY, Trial
from tests.services.server import ServiceBroken

from seamline.model.errors import SeamlineError, SetupError

HOME = ROOT / ".seamline" / "cluster"
MARK = ".made-by-a-trial"
"""A file in a trial's folder that says so: what is in another folder is nobody's to remove."""


def main(argv: list[str]) -> int:
    """Run the trial, and print its figures; return the exit code."""
    asked = parse(argv)
    asked.home.parent.mkdir(parents=True, exist_ok=True)
    alone = asked.home.with_suffix(".lock").open("w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"Another trial uses {asked.home}.\n\nHint: wait for it, or name another folder by --home.")
        return 6
    try:
        empty_folder(asked.home)
    except SetupError as wrong:
        print(wrong)
        return wrong.exit_code
    trial = Trial(asked.home, profile=asked.profile, s3=asked.s3)
    try:
        trial.begin()
        trial.check_hidden()
        if not asked.without_demo:
            trial.check_demo(backfill_days=asked.backfill_days)
        if asked.faults:
            trial.kill_each(asked.faults)
            trial.check_again()
    except (ServiceBroken, SeamlineError) as wrong:
        print(wrong, flush=True)
        return 1
    finally:
        trial.end()
        print_figures(trial.took)
    return 0


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster")
    parser.add_argument(
        "--home", type=Path, default=HOME, help="the folder of all its files, which is emptied"
    )
    parser.add_argument("--without-demo", action="store_true", help="only do the faults")
    parser.add_argument("--backfill-days", type=int, default=1, help="days to rebuild by Airflow's command")
    parser.add_argument("--profile", default="", choices=["", "celery"], help="of docker-compose.yaml")
    parser.add_argument("--s3", default="versitygw", choices=["versitygw", "moto"], help="the S3 server")
    parser.add_argument("--faults", help="what is done to it, with commas between; nothing for none")
    asked = parser.parse_args(argv)
    known = OF_CELERY if asked.profile == "celery" else FAULTS
    asked.faults = [*known] if asked.faults is None else [each for each in asked.faults.split(",") if each]
    if unknown := set(asked.faults) - set(known):
        parser.error(f"--faults: {', '.join(sorted(unknown))} is none of {', '.join(known)}")
    return asked


def empty_folder(home: Path) -> None:
    """Make the folder of a trial anew; SetupError for one that has files which no trial has written."""
    if home.exists() and not (home / MARK).exists() and any(home.iterdir()):
        raise SetupError(
            f"{home} has files that no trial has written.",
            hint="name a folder that is not there yet, by --home: a trial removes what it finds in its own.",
        )
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / MARK).touch()


def print_figures(took: Mapping[str, float]) -> None:
    """Print what each step took, in seconds, and the middle and the worst of all recoveries, with the revision."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    recoveries = {
        what: [seconds for step, seconds in took.items() if step.endswith(words)]
        for what, words in (("stream", COUNTED), ("run", BUILT))
    }
    middles = {
        what: {"n": len(all_), "p50": statistics.median(all_), "max": max(all_)}
        for what, all_ in recoveries.items()
        if all_
    }
    said = {"revision": done.stdout.strip(), "seconds": dict(took), "recovered after": middles}
    print(json.dumps(said, indent=2), flush=True)
