"""Commands about offsets that were not read: holes list, accept, fill."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor, open_pipeline, parse_range
from seamline.model.errors import BadRange

if TYPE_CHECKING:
    from seamline.model.time.intervals import Interval


@click.group()
def holes() -> None:
    """List or accept offsets that Kafka has deleted before they were read."""


@holes.command("list")
@click.argument("pipeline")
def list_(pipeline: str) -> None:
    """Show the register, what is missing now between the log and the topic, and what Kafka may delete unread soon."""
    from seamline.lake.log.epoch_log import read_condensed_log
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.holes import list_missing_ranges, list_undecided_gaps, to_register
    from seamline.model.protocol.holes import list_open_holes as register
    from seamline.supervisor.sources.source_losses import find_topic_gaps, format_loss_warnings

    epochs = read_condensed_log(locate_tables(pipeline))
    lacking = list_missing_ranges(epochs)
    for epoch in register(epochs):
        for part in lacking[epoch.number]:
            what = f"{part.start}..{part.end - 1}" if len(part) else f"everything from {part.start}"
            click.echo(
                f"hole {epoch.number}: {part.lane}: {what}; {format_hole_times(epoch.bounds)}; {epoch.reason}"
            )
    compiled, layout = open_pipeline(pipeline)
    control = ControlTable.ensure(layout).read()
    accepted = control.list_decided_gaps(epochs)
    for waiting in to_register(epochs, control.accepted):
        click.echo(f"accepted, registered at the next start: {waiting.gap}")
    for gap in list_undecided_gaps(find_topic_gaps(compiled, layout), accepted):
        click.echo(f"undecided: {gap}")
    for line in format_loss_warnings(compiled, layout, now=datetime.now(UTC)):
        click.echo(line)


@holes.command()
@click.argument("pipeline")
@click.option("--reason", required=True, help="Reason, recorded in the ledger.")
@click.option("--from", "start", help="First event time that lost records may have, UTC.")
@click.option(
    "--to",
    "end",
    help="Last event time that lost records may have, UTC (exclusive). Without bounds no interval can be certified.",
)
def accept(pipeline: str, reason: str, start: str | None, end: str | None) -> None:
    """Let the stream continue without what is missing now; its next start registers the hole."""
    from seamline.lake.log.epoch_log import read_condensed_log
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.holes import AcceptedGap, list_undecided_gaps
    from seamline.supervisor.sources.source_losses import find_topic_gaps

    compiled, layout = open_pipeline(pipeline)
    control = ControlTable.ensure(layout)
    known, now = parse_range(start, end), datetime.now(UTC)
    decided = control.read().list_decided_gaps(read_condensed_log(layout))
    found = list_undecided_gaps(find_topic_gaps(compiled, layout), decided)
    if not found:
        raise BadRange("No gap awaits a decision.", hint=f"see `seamline holes list {pipeline}`.")
    control.accept([AcceptedGap(gap, current_actor(), reason, now, known) for gap in found])
    for gap in found:
        click.echo(f"accepted: {gap}; {format_hole_times(known)}")


@holes.command()
@click.argument("pipeline")
@click.option("--hole", type=int, help="The number of the hole's epoch. [default: all holes]")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def fill(pipeline: str, hole: int | None, reason: str) -> None:
    """Read what was passed over and Kafka still has, beside the live stream, each record exactly once."""
    from seamline.supervisor.operations import request_hole_fills

    compiled, layout = open_pipeline(pipeline)
    parts = request_hole_fills(compiled, layout, hole, current_actor(), reason)
    click.echo(
        f"{compiled.name}: {sum(map(len, parts))} offsets will be read; `seamline holes list` lists the rest."
    )


def format_hole_times(known: Interval | None) -> str:
    """Say which event times a hole can have touched."""
    return f"event times {known}" if known else "of any event time"


COMMANDS = (holes,)
