"""What a demo is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import click

from seamline.model.errors import SeamlineError
from seamline.model.time.intervals import parse_moment

HOME = Path(".seamline/demo")
DAY = timedelta(days=1)
FIRST = parse_moment("2013-01-03")
LAST = parse_moment("2014-01-01")
LAST_PORT = 65_535


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
    warehouse: str = ""
    """Where its tables are: a folder, or a place in a bucket with nothing in it; empty for the demo's own folder."""

    @classmethod
    def parse(cls, argv: list[str]) -> Options:
        """Parse the command line; a ClickException says what is wrong with it, Exit that help was asked for."""
        command = click.Command("demo", params=[*PARAMETERS])
        return cls(**command.make_context("python -m seamline.local.demo", argv).params)

    @property
    def end(self) -> datetime:
        """The end of the last day that closes; the day after, the last with flights, stays open."""
        return parse_moment(self.until) - DAY if self.until else LAST


def parse_demo_day(context: click.Context, parameter: click.Parameter, text: str) -> str:
    """Require a day of 2013 before which a whole one closes, or nothing."""
    if not text:
        return text
    try:
        found = parse_moment(text)
    except SeamlineError as error:
        raise click.BadParameter(str(error).replace("\n\nHint: ", " ")) from None
    if not FIRST <= found <= LAST:
        raise click.BadParameter(f"{text} is not within {FIRST:%Y-%m-%d} and {LAST:%Y-%m-%d}")
    return text


PARAMETERS = (
    click.Option(
        ["--home"],
        type=click.Path(file_okay=False, path_type=Path),
        default=HOME,
        show_default=True,
        callback=lambda context, parameter, home: home.resolve(),
        help="Folder of its data.",
    ),
    click.Option(["--exit"], is_flag=True, help="End by itself, with 0 only if every number is right."),
    click.Option(
        ["--seconds"], type=float, default=120.0, show_default=True, help="Length of the replay, in seconds."
    ),
    click.Option(
        ["--until"], default="", callback=parse_demo_day, help="Replay only flights before this day (UTC)."
    ),
    click.Option(
        ["--backfill-days"],
        type=click.IntRange(0),
        default=3,
        show_default=True,
        help="Closed days to rebuild at the end.",
    ),
    click.Option(
        ["--kafka-port"],
        type=click.IntRange(1, LAST_PORT - 1),
        default=19092,
        show_default=True,
        help="Port of the broker; it takes two.",
    ),
    click.Option(
        ["--airflow-port"],
        type=click.IntRange(1, LAST_PORT - 2),
        default=18080,
        show_default=True,
        help="Port of Airflow; it takes three.",
    ),
    click.Option(
        ["--warehouse"],
        default="",
        help="Place of its tables, such as s3://bucket/demo, with nothing in it yet; by default in its folder.",
    ),
)
"""The options of the command line, in the order of its help."""
