"""The command that lets a stream go on from another cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seamline.cli.context import current_actor, open_pipeline, parse_range
from seamline.cli.stream import ensure_supervisor, stream
from seamline.model.errors import BadRange, NotFound

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.plan.stream.failover_plan import FailoverRequest
    from seamline.supervisor.clusters.failing_over import Drafted

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
    "whole",
    is_flag=True,
    help="Declare that the other cluster has all records of this one.",
)
@click.option("--lost-from", help="First event time of records that the other cluster may lack, UTC.")
@click.option(
    "--lost-to",
    help="Last event time of such records, UTC (exclusive). Without it no interval is certified if any may be missing.",
)
@click.option(
    "--fewer-partitions", "fewer", is_flag=True, help="Allow a topic to have fewer partitions there."
)
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
    from seamline.supervisor.clusters import failing_over

    compiled, layout = open_pipeline(pipeline)
    if back:
        if connection or way or dry or restart:
            raise click.UsageError(
                "--cancel takes a decision back at once: of the others it takes --reason alone."
            )
        made = failing_over.cancel(compiled, layout, actor=current_actor(), reason=asked["reason"])
        click.echo(
            f"{compiled.name}: the failover to {made.connection} is taken back; the next start reads {made.left}."
        )
        return
    if not connection or not way:
        raise click.UsageError("--to and --by are required.")
    request = read_request(connection, way, **asked)
    if dry:
        show_plan(failing_over.draft_failover(compiled, layout, request, os.environ))
        click.echo("It was a dry run.")
        return
    if restart:
        # What is refused is refused before the stream is stopped for it.
        failing_over.draft_failover(compiled, layout, request, os.environ)
    with started_again(layout, request) if restart else nullcontext():
        show_plan(failing_over.fail_over(compiled, layout, request, os.environ))
    click.echo(f"{compiled.name}: {'it' if restart else 'the next start'} reads {connection}.")
    if restart and here:
        ensure_supervisor(compiled.name)


def read_request(
    connection: str,
    way: str,
    *,
    margin: str,
    since: str | None,
    lost_from: str | None,
    lost_to: str | None,
    **asked: Any,
) -> FailoverRequest:
    """Read what is asked for; BadRange, NotFound for a file that is not there."""
    from seamline.model.protocol.clusters.failovers import By
    from seamline.model.time.intervals import parse_duration, parse_moment
    from seamline.plan.stream.failover_plan import FailoverRequest
    from seamline.plan.stream.start_positions import parse_spark_offsets

    if (lost_from is None) != (lost_to is None):
        raise BadRange("--lost-from and --lost-to belong together.", hint="pass both, or neither.")
    offsets = {}
    if way not in WORDS:
        if since is not None:
            raise BadRange("--since belongs to the other ways.", hint="the file says where reading begins.")
        offsets = parse_spark_offsets(read_offsets_file(way))
    return FailoverRequest(
        connection=connection,
        by=By(way) if way in WORDS else By.OFFSETS,
        actor=current_actor(),
        offsets=offsets,
        margin=parse_duration(margin),
        since=parse_moment(since) if since is not None else None,
        lost=parse_range(lost_from, lost_to),
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
def started_again(layout: Layout, request: FailoverRequest) -> Iterator[None]:
    """Stop a stream, and let it run afterwards, whatever has come of it."""
    from seamline.lake.tables.control_table import ControlTable
    from seamline.supervisor.outside import stop_stream

    reason = f"failover to {request.connection}"
    stop_stream(layout, actor=request.actor, reason=reason)
    try:
        yield
    finally:
        ControlTable.ensure(layout).restart(actor=request.actor, reason=reason, now=datetime.now(UTC))


def show_plan(drafted: Drafted) -> None:
    """Print the plan."""
    for line in drafted.lines:
        click.echo(line)


COMMANDS: tuple[click.Command, ...] = ()
"""None of its own: it is one of ``stream``."""
