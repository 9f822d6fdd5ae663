"""What a demo is asked to do."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from seamline.model.errors import SeamlineError
from seamline.model.time.intervals import parse_moment

HOME = Path(".seamline/demo")
DAY = timedelta(days=1)
FIRST = parse_moment("2013-01-03")
LAST = parse_moment("2014-01-01")


@dataclass(frozen=True)
class Options:
    """The command line of a demo."""

    home: Path
    """The folder that serves as SEAMLINE_HOME."""
    exit: bool
    """Whether to end by itself."""
    seconds: float
    """Length of the replay."""
    until: str
    """A day in UTC before which flights are replayed, exclusive; empty for all."""
    backfill_days: int
    """Closed days to rebuild at the end."""
    kafka_port: int
    """Where the broker listens; its controller has the next port."""
    airflow_port: int
    """Where Airflow's pages are served."""

    @classmethod
    def parse(cls, argv: list[str]) -> Options:
        """Parse the command line."""
        parser = argparse.ArgumentParser(prog="make demo", description="Real flights through both layers.")
        parser.add_argument("--home", type=Path, default=HOME, help="folder of its data")
        parser.add_argument(
            "--exit", action="store_true", help="end by itself; 0 only if the answer is right"
        )
        parser.add_argument("--seconds", type=float, default=120, help="length of the replay")
        parser.add_argument(
            "--until", type=parse_demo_day, default="", help="replay only flights before this day (UTC)"
        )
        parser.add_argument("--backfill-days", type=int, default=3, help="closed days to rebuild at the end")
        parser.add_argument("--kafka-port", type=int, default=19092)
        parser.add_argument("--airflow-port", type=int, default=18080)
        found = vars(parser.parse_args(argv))
        return cls(**{**found, "home": found["home"].resolve()})

    @property
    def end(self) -> datetime:
        """The end of the last day that closes; the day after, the last with flights, stays open."""
        return parse_moment(self.until) - DAY if self.until else LAST


def parse_demo_day(text: str) -> str:
    """Require a day of 2013 before which a whole one closes, or nothing."""
    if not text:
        return text
    try:
        found = parse_moment(text)
    except SeamlineError as error:
        raise ArgumentTypeError(str(error).replace("\n\nHint: ", " ")) from None
    if not FIRST <= found <= LAST:
        raise ArgumentTypeError(f"{text} is not within {FIRST:%Y-%m-%d} and {LAST:%Y-%m-%d}")
    return text
