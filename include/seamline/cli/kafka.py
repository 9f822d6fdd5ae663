"""Commands about Kafka: produce, topics."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from seamline.cli.context import opened
from seamline.model.errors import NotFound
from seamline.model.intervals import parse_moment

FLIGHTS = "flights"


@click.command()
@click.argument("pipeline")
@click.option(
    "--file", "source", type=click.Path(path_type=Path), help="Records, one JSON object a line; - is stdin."
)
@click.option("--topic", default="", help="--file: one of the pipeline's topics; the first if left out.")
@click.option(
    "--seconds", type=float, help="flights: let the year take so long (default: as fast as it goes)."
)
@click.option("--speedup", type=float, help="flights: how much faster than the clock event time runs.")
@click.option("--from", "start", help="flights: the first day.")
@click.option("--to", "end", help="flights: the end; it is not in.")
@click.option("--limit", type=click.IntRange(min=1), help="flights: only so many.")
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    default=Path("journal.jsonl"),
    show_default=True,
    help="flights: file that tells what was sent.",
)
@click.option(
    "--mischief/--no-mischief", default=True, show_default=True, help="flights: late, repeated, bad records."
)
def produce(
    pipeline: str,
    source: Path | None,
    topic: str,
    seconds: float | None,
    speedup: float | None,
    start: str | None,
    end: str | None,
    limit: int | None,
    journal: Path,
    mischief: bool,
) -> None:
    """Send records to a pipeline's topic: those of a file, or for `flights` the year 2013 replayed."""
    if source is not None:
        return from_file(pipeline, source, topic)
    if pipeline != FLIGHTS:
        raise click.UsageError(f"--file is needed: only {FLIGHTS} has records of its own.")
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import resolve
    from seamline.local.flights import Span, replay

    compiled, _ = opened(pipeline)
    declared = compiled.definition.source
    connection = resolve(declared.connection)
    with TopicAdmin(connection) as admin:
        partitions = len(admin.partitions(declared.topics[0]))
    shown = progress if sys.stderr.isatty() else None
    sent = replay(
        connection,
        declared.topics[0],
        partitions,
        journal,
        seconds=seconds,
        speedup=speedup,
        span=Span(parse_moment(start) if start else None, parse_moment(end) if end else None),
        limit=limit,
        mischief=mischief,
        on_progress=shown,
    )
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(sent.kinds.items()))
    click.echo(f"Sent in {sent.seconds:.1f} s: {kinds}. Journal: {journal}")
    return None


def progress(sent: int, clock: datetime) -> None:
    """Show how far a replay is."""
    click.echo(f"\r{sent} records, {clock.astimezone(UTC):%Y-%m-%d %H:%M}", nl=False, err=True)


def from_file(name: str, source: Path, topic: str) -> None:
    """Send each line of a file as one record, as it is; to the first of the pipeline's topics by default."""
    from seamline.kafka.connections import resolve
    from seamline.kafka.produce import RecordWriter

    compiled, _ = opened(name)
    declared = compiled.definition.source
    to = topic or declared.topics[0]
    if to not in declared.topics:
        raise NotFound(f"{name} does not read topic {to!r}.", hint=f"it reads {', '.join(declared.topics)}.")
    if str(source) != "-" and not source.is_file():
        raise NotFound(f"There is no file {source}.", hint="give the path of a file, or - for stdin.")
    count = 0
    with RecordWriter(resolve(declared.connection)) as writer, click.open_file(str(source), "rb") as lines:
        for line in lines:
            if value := line.rstrip(b"\r\n"):
                writer.send(to, value=value)
                count += 1
    click.echo(f"Sent {count} records to {to}.")


@click.group()
@click.option(
    "--connection", default="kafka_default", show_default=True, help="Name of the Kafka connection."
)
@click.pass_context
def topics(context: click.Context, connection: str) -> None:
    """Create, delete, list topics, and show their offsets."""
    context.obj = connection


@topics.command("list")
@click.pass_obj
def list_(connection: str) -> None:
    """List the topics."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import resolve

    with TopicAdmin(resolve(connection)) as admin:
        for name in admin.topics():
            click.echo(f"{name}  {len(admin.partitions(name))} partitions  {admin.topic_id(name)}")


@topics.command()
@click.argument("topic")
@click.option("--partitions", type=click.IntRange(min=1), default=4, show_default=True)
@click.pass_obj
def create(connection: str, topic: str, partitions: int) -> None:
    """Create a topic; nothing happens if it is there."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import resolve

    with TopicAdmin(resolve(connection)) as admin:
        made = admin.create_topic(topic, partitions)
    click.echo(f"{topic}: {'created' if made else 'was there already'}.")


@topics.command()
@click.argument("topic")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(connection: str, topic: str, yes: bool) -> None:
    """Delete a topic and everything in it."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import resolve

    if not yes:
        click.confirm(f"Delete topic {topic} and every record in it?", abort=True)
    with TopicAdmin(resolve(connection)) as admin:
        admin.delete_topic(topic)
    click.echo(f"{topic}: deleted.")


@topics.command()
@click.argument("topic")
@click.pass_obj
def offsets(connection: str, topic: str) -> None:
    """Show the first and the end offset of each partition."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import resolve

    with TopicAdmin(resolve(connection)) as admin:
        first, end = admin.beginning_offsets(topic), admin.end_offsets(topic)
        click.echo(f"{topic}  {admin.topic_id(topic)}")
    for partition in sorted(end):
        count = end[partition] - first[partition]
        click.echo(f"  {partition}: {first[partition]} .. {end[partition]} ({count} offsets)")


COMMANDS = (produce, topics)
