"""Commands about the speed layer: what people do with a stream, supervise, drain."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from seamline.cli.context import current_actor, load_configured_pipeline, open_pipeline, parse_range
from seamline.model.errors import BadRange

if TYPE_CHECKING:
    from seamline.supervisor.operations import Order

UPGRADES = ("last-state", "savepoint", "stateless")


@click.group()
def stream() -> None:
    """Operate streams: set the desired state; the supervisor, which seamline__reconcile starts, makes it so."""


def add_position_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about where to start."""
    options = (
        click.option(
            "--from",
            "place",
            default="ledger",
            show_default=True,
            help="Where to continue: ledger (where the log ends), earliest, latest, group:ID (where a consumer group "
            "is), an instant of Kafka's time, or offsets: 0:1200,1:1180, topic/0:1200, or JSON as Spark has it.",
        ),
        click.option(
            "--then-backfill-gap",
            "fill",
            is_flag=True,
            help="Also read what is passed over, beside the live stream.",
        ),
        click.option("--lost-from", help="First event time that may be passed over, UTC."),
        click.option(
            "--lost-to",
            help="Last event time that may be passed over, UTC (exclusive). Without it no interval is certified until "
            "the gap is filled.",
        ),
        click.option("--reason", default="", help="Reason, recorded in the control log."),
        click.option("--here", is_flag=True, help="Start the supervisor on this machine if none lives."),
    )
    for option in reversed(options):
        command = option(command)
    return click.argument("pipeline")(command)


@stream.command()
@add_position_options
def start(pipeline: str, here: bool, **asked: Any) -> None:
    """Start the stream."""
    execute_order(pipeline, "start", here=here, **asked)


@stream.command()
@add_position_options
@click.option(
    "--upgrade-mode",
    "upgrade",
    type=click.Choice(UPGRADES),
    default="last-state",
    show_default=True,
    help="How a changed definition is taken up. savepoint: the position before it gets a name, to which restore "
    "goes back. stateless: what is unread is passed over.",
)
@click.option("--savepoint", "name", default="", help="The savepoint's name. [default: made of the time]")
def restart(pipeline: str, here: bool, **asked: Any) -> None:
    """Restart the driver with the current definition."""
    execute_order(pipeline, "restart", here=here, **asked)


@stream.command()
@click.argument("pipeline")
@click.option("--savepoint", "name", default="", help="Name the position before it stops.")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def stop(pipeline: str, reason: str, name: str) -> None:
    """Stop the stream: it finishes its epoch, declares an edge and releases its lease."""
    if name:
        execute_order(pipeline, "savepoint", reason=reason, name=name)
    write_desired_state(pipeline, "stopped", reason)


@stream.command()
@click.argument("pipeline")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def pause(pipeline: str, reason: str) -> None:
    """Pause the stream: the driver stays up and reads nothing; `start` resumes at once."""
    execute_order(pipeline, "pause", reason=reason)


@stream.command()
@click.argument("pipeline")
@click.argument("name", required=False)
@click.option("--reason", default="", help="Reason, recorded with the savepoint.")
def savepoint(pipeline: str, name: str | None, reason: str) -> None:
    """Name the newest position of the log and the versions that are served; without NAME list the savepoints."""
    from seamline.lake.tables.control_table import ControlTable

    if name:
        execute_order(pipeline, "savepoint", reason=reason, name=name)
        return
    _, layout = open_pipeline(pipeline)
    for each in ControlTable.ensure(layout).read().savepoints:
        click.echo(str(each))


@stream.command()
@click.argument("pipeline")
@click.argument("name")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def restore(pipeline: str, name: str, reason: str) -> None:
    """Serve the versions of views that a savepoint names. The log is not cut back, and nothing is read twice."""
    execute_order(pipeline, "restore", reason=reason, name=name)


@stream.command()
@click.argument("pipeline")
@click.argument("name")
@click.option(
    "--as", "other", required=True, help="The pipeline that begins there; its definition must exist."
)
def fork(pipeline: str, name: str, other: str) -> None:
    """Start another pipeline from a savepoint: its log begins as a copy, and it reads on from there."""
    from seamline.lake.publish.forking import fork_pipeline as make
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.savepoint import find_savepoint

    compiled, layout = open_pipeline(pipeline)
    point = find_savepoint(ControlTable.ensure(layout).read().savepoints, name)
    forked = load_configured_pipeline(other)
    rows = make(compiled, layout, point, forked, locate_tables(forked.name))
    click.echo(f"{forked.name}: begins with {rows} rows of {compiled.name} up to epoch {point.epoch}.")
    click.echo(f"Its views answer once built: `seamline run {forked.name} --from ... --to ...`.")
    click.echo(f"`seamline stream start {forked.name}` reads on from there.")


def execute_order(
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
    from seamline.plan.stream.start_positions import StartPlace
    from seamline.supervisor.operations import Action, Order, Upgrade, carry_out

    compiled, layout = open_pipeline(pipeline)
    if (lost_from is None) != (lost_to is None):
        raise BadRange(
            "--lost-from and --lost-to belong together.",
            hint="pass both, or neither: then it may be of any time.",
        )
    if "upgrade" in asked:
        asked["upgrade"] = Upgrade(asked["upgrade"])
    order: Order = Order(
        Action(action),
        current_actor(),
        place=StartPlace.parse(place),
        lost=parse_range(lost_from, lost_to),
        **asked,
    )
    for line in carry_out(order, compiled, layout):
        click.echo(line)
    if here:
        ensure_supervisor(compiled.name)


def ensure_supervisor(name: str) -> None:
    """Start a supervisor on this machine if none lives."""
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.control_table import ControlTable
    from seamline.supervisor.outside import start_detached

    if not ControlTable.ensure(locate_tables(name)).live_lease():
        click.echo(f"Started supervisor {start_detached(name, {})}.")


def write_desired_state(name: str, state: str, reason: str) -> None:
    """Write the desired state, whatever format the tables are of: a stream must be stopped to migrate them."""
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.control_table import ControlTable, Desired

    pipeline = load_configured_pipeline(name)
    table = ControlTable.ensure(locate_tables(pipeline.name))
    table.want(Desired(state), actor=current_actor(), reason=reason, now=datetime.now(UTC))
    click.echo(f"{pipeline.name}: the stream should be {state}.")


@click.command()
@click.argument("pipeline")
@click.option(
    "--wait",
    "waits",
    is_flag=True,
    help="For containers: wait, and do not end, while the stream is not started, is stopped, has been given up or is "
    "another supervisor's.",
)
def supervise(pipeline: str, waits: bool) -> int:
    """Run the stream's supervisor in the foreground."""
    from seamline.cli.standing_by import Pulse, find_pulse_file, stand_by
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.table_format import require_format
    from seamline.supervisor.driver_watch import make_watch_factory
    from seamline.supervisor.process import supervise as keep_up

    name = load_configured_pipeline(pipeline).name
    layout = locate_tables(name)

    def run(halt: Event | None = None) -> int:
        return keep_up(name, require_format(layout), stop=halt, watching=make_watch_factory(name, layout))

    return stand_by(layout, run, halt=Pulse(find_pulse_file(name))) if waits else run()


@click.command()
@click.argument("pipeline")
@click.option("--reason", required=True, help="Reason, recorded in the ledger.")
def drain(pipeline: str, reason: str) -> None:
    """Declare that the topics and tables are finite: no more records will come.

    Once the stream has read them all it moves the watermark past the last interval and what is joined with it, so
    that the interval can be built. A record that comes all the same is late, and counted.
    """
    from seamline.lake.tables.control_table import ControlTable, Drained
    from seamline.supervisor.sources.source_losses import offsets_now

    compiled, layout = open_pipeline(pipeline)
    topics, lanes = compiled.definition.kafka_topics, offsets_now(compiled).ends
    ControlTable.ensure(layout).declare_drained(
        Drained(lanes, current_actor(), reason), now=datetime.now(UTC)
    )
    said = [f"Delta table {each.table} ends with its newest version" for each in compiled.definition.tables]
    if topics:
        count = sum(end for lane, end in lanes.items() if not lane.of_table)
        said.insert(0, f"{', '.join(topics)} end{'s' * (len(topics) == 1)} at {count} offsets")
    click.echo(f"{compiled.name}: {'; '.join(said)}, by declaration.")


COMMANDS = (stream, supervise, drain)
