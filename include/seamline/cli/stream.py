"""Commands about the speed layer: what people do with a stream, supervise, drain."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from seamline.cli.context import actor, catalog, opened, span

if TYPE_CHECKING:
    from seamline.supervisor.operations import Order

UPGRADES = ("last-state", "savepoint", "stateless")


@click.group()
def stream() -> None:
    """Say what a stream should be doing; its supervisor, which the reconcile DAG starts, makes it so."""


def position(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about where to start."""
    options = (
        click.option(
            "--from",
            "place",
            default="ledger",
            show_default=True,
            help="Where to read on: ledger (where the log ends), earliest, latest, an instant of Kafka's time, "
            "or offsets: 0:1200,1:1180, or topic/0:1200.",
        ),
        click.option(
            "--then-backfill-gap",
            "fill",
            is_flag=True,
            help="Read what is passed over too, beside the live stream.",
        ),
        click.option("--lost-from", help="Event times that may be passed over: from here,"),
        click.option("--lost-to", help="to here. Without, no interval is certified until the gap is filled."),
        click.option("--reason", default="", help="Kept with the order."),
        click.option("--here", is_flag=True, help="Start the supervisor on this machine if none lives."),
    )
    for option in reversed(options):
        command = option(command)
    return click.argument("pipeline")(command)


@stream.command()
@position
def start(pipeline: str, here: bool, **asked: Any) -> None:
    """Want the stream to run."""
    carried_out(pipeline, "start", here=here, **asked)


@stream.command()
@position
@click.option(
    "--upgrade-mode",
    "upgrade",
    type=click.Choice(UPGRADES),
    default="last-state",
    show_default=True,
    help="How a changed definition is taken up. savepoint: the position before it gets a name, to which restore "
    "goes back. stateless: what is unread is passed over.",
)
@click.option("--savepoint", "name", default="", help="Its name; made of the time if not given.")
def restart(pipeline: str, here: bool, **asked: Any) -> None:
    """Want the driver started anew, with the definition as it is now."""
    carried_out(pipeline, "restart", here=here, **asked)


@stream.command()
@click.argument("pipeline")
@click.option("--savepoint", "name", default="", help="Name the position before it stops.")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def stop(pipeline: str, reason: str, name: str) -> None:
    """Want the stream to stop: it finishes its epoch, declares an edge and releases its lease."""
    if name:
        carried_out(pipeline, "savepoint", reason=reason, name=name)
    want(pipeline, "stopped", reason)


@stream.command()
@click.argument("pipeline")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def pause(pipeline: str, reason: str) -> None:
    """Want the stream to read nothing, with its driver up: `start` goes on at once."""
    carried_out(pipeline, "pause", reason=reason)


@stream.command()
@click.argument("pipeline")
@click.argument("name", required=False)
@click.option("--reason", default="", help="Kept with it.")
def savepoint(pipeline: str, name: str | None, reason: str) -> None:
    """Name the newest position of the log and the versions that are served; without NAME list the savepoints."""
    from seamline.lake.tables.control_table import ControlTable

    if name:
        carried_out(pipeline, "savepoint", reason=reason, name=name)
        return
    _, layout = opened(pipeline)
    for each in ControlTable.ensure(layout).read().savepoints:
        click.echo(str(each))


@stream.command()
@click.argument("pipeline")
@click.argument("name")
@click.option("--reason", default="", help="Kept with it.")
def restore(pipeline: str, name: str, reason: str) -> None:
    """Serve the versions of views that a savepoint names. The log is not cut back, and nothing is read twice."""
    carried_out(pipeline, "restore", reason=reason, name=name)


@stream.command()
@click.argument("pipeline")
@click.argument("name")
@click.option(
    "--as", "other", required=True, help="The pipeline that begins there; its definition must exist."
)
def fork(pipeline: str, name: str, other: str) -> None:
    """Let another pipeline begin with the log up to a savepoint; it reads on from there by itself."""
    from seamline.lake.publish.forking import fork as make
    from seamline.lake.storage.layout import Layout
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.savepoint import named

    compiled, layout = opened(pipeline)
    point = named(ControlTable.ensure(layout).read().savepoints, name)
    forked = catalog().pipeline(other)
    rows = make(compiled, layout, point, forked, Layout(layout.warehouse, forked.name))
    click.echo(f"{forked.name}: begins with {rows} rows of {compiled.name} up to epoch {point.epoch}.")
    click.echo(f"Its views answer once built: `seamline run {forked.name} --from ... --to ...`.")
    click.echo(f"`seamline stream start {forked.name}` reads on from there.")


def carried_out(
    pipeline: str,
    action: str,
    *,
    here: bool = False,
    place: str = "ledger",
    lost_from: str | None = None,
    lost_to: str | None = None,
    **asked: Any,
) -> None:
    """Carry out an order and say what was done."""
    from seamline.plan.stream.start_positions import Place
    from seamline.supervisor.operations import Action, Order, Upgrade, carry_out

    compiled, layout = opened(pipeline)
    if "upgrade" in asked:
        asked["upgrade"] = Upgrade(asked["upgrade"])
    order: Order = Order(
        Action(action), actor(), place=Place.parse(place), lost=span(lost_from, lost_to), **asked
    )
    for line in carry_out(order, compiled, layout):
        click.echo(line)
    if here:
        up(compiled.name)


def up(name: str) -> None:
    """Start a supervisor on this machine if none lives."""
    from seamline.lake.storage.layout import Layout, warehouse
    from seamline.lake.tables.control_table import ControlTable
    from seamline.supervisor.outside import start_detached

    if not ControlTable.ensure(Layout(warehouse(), name)).held():
        click.echo(f"Started supervisor {start_detached(name, {})}.")


def want(name: str, state: str, reason: str) -> None:
    """Write the desired state, whatever format the tables are of: a stream must be stopped to migrate them."""
    from seamline.lake.storage.layout import Layout, warehouse
    from seamline.lake.tables.control_table import ControlTable, Desired

    pipeline = catalog().pipeline(name)
    table = ControlTable.ensure(Layout(warehouse(), pipeline.name))
    table.want(Desired(state), actor=actor(), reason=reason, now=datetime.now(UTC))
    click.echo(f"{pipeline.name}: the stream should be {state}.")


@click.command()
@click.argument("pipeline")
def supervise(pipeline: str) -> int:
    """Run the stream's driver and keep it up, in the foreground, while it is wanted."""
    from seamline.supervisor.driver_watch import watching
    from seamline.supervisor.process import supervise as keep_up

    compiled, layout = opened(pipeline)
    return keep_up(compiled.name, layout, watching=watching(compiled.name, layout))


@click.command()
@click.argument("pipeline")
@click.option("--reason", required=True, help="Kept in the ledger.")
def drain(pipeline: str, reason: str) -> None:
    """Declare that the topic is finite: no record comes after those it holds now.

    Once the stream has read them all it moves the watermark past the last interval, which can be built then.
    A record that comes all the same is late, and counted.
    """
    from seamline.lake.tables.control_table import ControlTable, Drained
    from seamline.supervisor.topic_losses import offsets_now

    compiled, layout = opened(pipeline)
    source, lanes = compiled.definition.source, offsets_now(compiled).ends
    ControlTable.ensure(layout).declare_drained(Drained(lanes, actor(), reason), now=datetime.now(UTC))
    click.echo(
        f"{compiled.name}: {', '.join(source.topics)} ends at {sum(lanes.values())} offsets, by declaration."
    )


COMMANDS = (stream, supervise, drain)
