"""Commands about the speed layer: stream start and stop, supervise, drain, holes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import actor, catalog, opened, span
from seamline.model.errors import BadRange

if TYPE_CHECKING:
    from seamline.model.intervals import Interval


@click.group()
def stream() -> None:
    """Say what a stream should be doing; the reconcile DAG, or `seamline supervise`, makes it so."""


@stream.command()
@click.argument("pipeline")
@click.option("--reason", default="", help="Kept with the wish.")
def start(pipeline: str, reason: str) -> None:
    """Want the stream to run."""
    want(pipeline, "running", reason)


@stream.command()
@click.argument("pipeline")
@click.option("--reason", default="", help="Kept with the wish.")
def stop(pipeline: str, reason: str) -> None:
    """Want the stream to stop: it finishes its epoch, declares an edge and releases its lease."""
    want(pipeline, "stopped", reason)


def want(name: str, state: str, reason: str) -> None:
    """Write the desired state, whatever format the tables are of: a stream must be stopped to migrate them."""
    from seamline.lake.control import ControlTable, Desired
    from seamline.lake.layout import Layout, warehouse

    pipeline = catalog().pipeline(name)
    table = ControlTable.ensure(Layout(warehouse(), pipeline.name))
    table.want(Desired(state), actor=actor(), reason=reason, now=datetime.now(UTC))
    click.echo(f"{pipeline.name}: the stream should be {state}.")


@click.command()
@click.argument("pipeline")
def supervise(pipeline: str) -> int:
    """Run the stream's driver and keep it up, in the foreground, while it is wanted."""
    from seamline.supervisor.process import supervise as keep_up

    compiled, layout = opened(pipeline)
    return keep_up(compiled.name, layout)


@click.command()
@click.argument("pipeline")
@click.option("--reason", required=True, help="Kept in the ledger.")
def drain(pipeline: str, reason: str) -> None:
    """Declare that the topic is finite: no record comes after those it holds now.

    Once the stream has read them all it moves the watermark past the last interval, which can be built then.
    A record that comes all the same is late, and counted.
    """
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import resolve
    from seamline.lake.control import ControlTable, Drained
    from seamline.model.offsets import Lane

    compiled, layout = opened(pipeline)
    source = compiled.definition.source
    with TopicAdmin(resolve(source.connection)) as admin:
        lanes = {
            Lane(admin.topic_id(name), partition): end
            for name in source.topics
            for partition, end in admin.end_offsets(name).items()
        }
    ControlTable.ensure(layout).declare_drained(Drained(lanes, actor(), reason), now=datetime.now(UTC))
    click.echo(
        f"{compiled.name}: {', '.join(source.topics)} ends at {sum(lanes.values())} offsets, by declaration."
    )


@click.group()
def holes() -> None:
    """Offsets that Kafka can no longer give us: list them, or accept that they are gone."""


@holes.command("list")
@click.argument("pipeline")
def list_(pipeline: str) -> None:
    """Show the register, what is missing now between the log and the topic, and what Kafka may delete unread soon."""
    from seamline.lake.control import ControlTable
    from seamline.lake.layout import Layout, warehouse
    from seamline.lake.log import known_epochs
    from seamline.model.holes import holes as register
    from seamline.supervisor.topics import ageing, missing, soon

    for epoch in register(known_epochs(Layout(warehouse(), pipeline))):
        [part] = epoch.ranges
        what = f"{part.start}..{part.end - 1}" if len(part) else f"everything from {part.start}"
        click.echo(f"hole {epoch.number}: {part.lane}: {what}; {bounds(epoch.bounds)}; {epoch.reason}")
    compiled, layout = opened(pipeline)
    decided = {each.gap for each in ControlTable.ensure(layout).read().accepted}
    for gap in missing(compiled, layout):
        click.echo(f"{'accepted' if gap in decided else 'undecided'}: {gap}")
    for gap in ageing(compiled, layout, now=datetime.now(UTC)):
        click.echo(soon(gap))


@holes.command()
@click.argument("pipeline")
@click.option("--reason", required=True, help="Kept in the ledger.")
@click.option("--from", "start", help="The lost records' event times, as far as that is known: from here,")
@click.option("--to", "end", help="to here; it is not in. Without bounds no interval can be certified.")
def accept(pipeline: str, reason: str, start: str | None, end: str | None) -> None:
    """Let the stream go on without what is missing now; it registers it at its next start."""
    from seamline.lake.control import ControlTable
    from seamline.model.holes import AcceptedGap, undecided
    from seamline.supervisor.topics import missing

    compiled, layout = opened(pipeline)
    control = ControlTable.ensure(layout)
    known, now = span(start, end), datetime.now(UTC)
    found = undecided(missing(compiled, layout), control.read().accepted)
    if not found:
        raise BadRange("Nothing undecided is missing.", hint=f"see `seamline holes list {pipeline}`.")
    control.accept([AcceptedGap(gap, actor(), reason, now, known) for gap in found])
    for gap in found:
        click.echo(f"accepted: {gap}; {bounds(known)}")


def bounds(known: Interval | None) -> str:
    """Say which event times a hole can have touched."""
    return f"event times {known}" if known else "of any event time"


COMMANDS = (stream, supervise, drain, holes)
