"""The command that lets a stream go on from another cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seamline.cli.context import current_actor, open_pipeline
from seamline.cli.stream import ensure_supervisor, stream
from seamline.model.errors import BadRange, NotFound

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.supervisor.clusters.failover_orders import FailoverOrder

WORDS = ("event_id", "timestamp")


@stream.command()
@click.argument("pipeline")
@click.option("--to", "connection", help="The Airflow connection of the other cluster.")
@click.option(
    "--by",
    "way",
    metavar="FILE|event_id|timestamp",
    help="Where reading continues: at the offset that a JSON file has for each partition, or --margin before the last "
    "record that was read. Records that are read again are recognised by their ids (event_id), or may count twice.",
)
@click.option(
    "--margin",
    default="5 minutes",
    show_default=True,
    help="With event_id and timestamp, how long before the last record that was read reading begins.",
)
@click.option("--since", help="Read from this Kafka timestamp on instead, UTC.")
@click.option(
    "--nothing-missing",
    is_flag=True,
    help="Declare that the other cluster has all records of this one.",
)
@click.option("--lost-from", help="First event time of records that the other cluster may lack, UTC.")
@click.option(
    "--lost-to",
    help="Last event time of such records, UTC (exclusive). Without it no interval is certified if any may be missing.",
)
@click.option("--fewer-partitions", is_flag=True, help="Allow a topic to have fewer partitions there.")
@click.option("--restart", is_flag=True, help="Stop the stream first, and start it afterwards.")
@click.option(
    "--here", is_flag=True, help="With --restart, start the supervisor on this machine if none lives."
)
@click.option("--dry-run", "dry", is_flag=True, help="Only show the plan.")
@click.option("--cancel", "back", is_flag=True, help="Take back a failover that no start has registered yet.")
@click.option("--reason", default="", help="Reason, recorded in the control log and in the ledger.")
def failover(
    pipeline: str,
    *,
    connection: str | None,
    way: str | None,
    restart: bool,
    here: bool,
    dry: bool,
    back: bool,
    **asked: Any,
) -> None:
    """Continue from another cluster, where the same records have other offsets; prints the plan first.

    The stream's next start closes the partitions of the old cluster and begins those of the other one, and records in
    the log what may be missing or count twice. Failing back is another failover.
    """
    from seamline.supervisor.clusters.failing_over import carry_out_failover
    from seamline.supervisor.clusters.failover_orders import FailoverAction, FailoverOrder

    compiled, layout = open_pipeline(pipeline)
    if back:
        if connection or way or dry or restart:
            raise click.UsageError(
                "--cancel takes a decision back at once: of the others it takes --reason alone."
            )
        cancelling = FailoverOrder(FailoverAction.CANCEL, current_actor(), asked["reason"])
        print_lines(carry_out_failover(cancelling, compiled, layout, os.environ))
        return
    if not connection or not way:
        raise click.UsageError("--to and --by are required.")
    order = make_order(connection, way, **asked)
    order.read()
    planning = replace(order, action=FailoverAction.PLAN)
    if dry:
        print_lines([*carry_out_failover(planning, compiled, layout, os.environ), "It was a dry run."])
        return
    if restart:
        # What is refused is refused before the stream is stopped for it.
        carry_out_failover(planning, compiled, layout, os.environ)
    with started_again(layout, order) if restart else nullcontext():
        print_lines(carry_out_failover(order, compiled, layout, os.environ))
    click.echo(f"{compiled.name}: {'it' if restart else 'the next start'} reads {connection}.")
    if restart and here:
        ensure_supervisor(compiled.name)


def make_order(connection: str, way: str, **asked: Any) -> FailoverOrder:
    """Make an order of the command's words; NotFound for a file that is not there, BadRange for one that is no text."""
    from seamline.supervisor.clusters.failover_orders import FailoverAction, FailoverOrder

    return FailoverOrder(
        FailoverAction.DECIDE,
        current_actor(),
        connection=connection,
        by=way if way in WORDS else "offsets",
        offsets="" if way in WORDS or asked["since"] is not None else read_offsets_file(way),
        **asked,
    )


def read_offsets_file(name: str) -> str:
    """Read the text of a file; NotFound where there is none, BadRange for one that cannot be read."""
    hint = f'--by is {", ".join(WORDS)}, or a file of offsets: {{"TOPIC": {{"0": 1200}}}}.'
    try:
        if not Path(name).is_file():
            raise NotFound(f"There is no file {name}.", hint=hint)
        return Path(name).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BadRange(f"The file {name} cannot be read: {why}.", hint=hint) from None


@contextmanager
def started_again(layout: Layout, order: FailoverOrder) -> Iterator[None]:
    """Stop a stream, and let it run afterwards, whatever has come of it."""
    from seamline.lake.tables.control_table import ControlTable
    from seamline.supervisor.outside import stop_stream

    reason = f"failover to {order.connection}"
    stop_stream(layout, actor=order.actor, reason=reason)
    try:
        yield
    finally:
        ControlTable.ensure(layout).restart(actor=order.actor, reason=reason, now=datetime.now(UTC))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        click.echo(line)


COMMANDS: tuple[click.Command, ...] = ()
"""None of its own: it is one of ``stream``."""
