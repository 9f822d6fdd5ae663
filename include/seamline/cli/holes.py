"""Commands about offsets that were not read: holes list, accept, fill."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import actor, opened, span
from seamline.model.errors import BadRange

if TYPE_CHECKING:
    from seamline.model.time.intervals import Interval


@click.group()
def holes() -> None:
    """Offsets that Kafka can no longer give us: list them, or accept that they are gone."""


@holes.command("list")
@click.argument("pipeline")
def list_(pipeline: str) -> None:
    """Show the register, what is missing now between the log and the topic, and what Kafka may delete unread soon."""
    from seamline.lake.log.epoch_log import condensed_log
    from seamline.lake.storage.layout import Layout, warehouse
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.holes import holes as register
    from seamline.model.protocol.holes import rest, to_register, undecided
    from seamline.supervisor.topic_losses import ageing, missing, soon

    epochs = condensed_log(Layout(warehouse(), pipeline))
    lacking = rest(epochs)
    for epoch in register(epochs):
        for part in lacking[epoch.number]:
            what = f"{part.start}..{part.end - 1}" if len(part) else f"everything from {part.start}"
            click.echo(f"hole {epoch.number}: {part.lane}: {what}; {bounds(epoch.bounds)}; {epoch.reason}")
    compiled, layout = opened(pipeline)
    accepted = ControlTable.ensure(layout).read().accepted
    for waiting in to_register(epochs, accepted):
        click.echo(f"accepted, registered at the next start: {waiting.gap}")
    for gap in undecided(missing(compiled, layout), accepted):
        click.echo(f"undecided: {gap}")
    for gap in ageing(compiled, layout, now=datetime.now(UTC)):
        click.echo(soon(gap))


@holes.command()
@click.argument("pipeline")
@click.option("--reason", required=True, help="Kept in the ledger.")
@click.option("--from", "start", help="The lost records' event times, as far as that is known: from here,")
@click.option("--to", "end", help="to here; it is not in. Without bounds no interval can be certified.")
def accept(pipeline: str, reason: str, start: str | None, end: str | None) -> None:
    """Let the stream go on without what is missing now; it registers it at its next start."""
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.holes import AcceptedGap, undecided
    from seamline.supervisor.topic_losses import missing

    compiled, layout = opened(pipeline)
    control = ControlTable.ensure(layout)
    known, now = span(start, end), datetime.now(UTC)
    found = undecided(missing(compiled, layout), control.read().accepted)
    if not found:
        raise BadRange("Nothing undecided is missing.", hint=f"see `seamline holes list {pipeline}`.")
    control.accept([AcceptedGap(gap, actor(), reason, now, known) for gap in found])
    for gap in found:
        click.echo(f"accepted: {gap}; {bounds(known)}")


@holes.command()
@click.argument("pipeline")
@click.option("--hole", type=int, help="The number of the hole's epoch; all of them if not given.")
@click.option("--reason", default="", help="Kept with the order.")
def fill(pipeline: str, hole: int | None, reason: str) -> None:
    """Read what was passed over and Kafka still has, beside the live stream, each record once."""
    from seamline.supervisor.operations import fillings

    compiled, layout = opened(pipeline)
    parts = fillings(compiled, layout, hole, actor(), reason)
    click.echo(
        f"{compiled.name}: {sum(map(len, parts))} offsets will be read; `seamline holes list` tells the rest."
    )


def bounds(known: Interval | None) -> str:
    """Say which event times a hole can have touched."""
    return f"event times {known}" if known else "of any event time"


COMMANDS = (holes,)
