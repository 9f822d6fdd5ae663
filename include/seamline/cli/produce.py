"""The command that sends records: a file's, the flights of 2013, or what a generator makes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from seamline.cli.context import open_pipeline
from seamline.model.errors import BadRange, NotFound
from seamline.model.time.intervals import format_utc_instant, parse_moment

FLIGHTS = "flights"
COMMON = frozenset({"pipeline", "seed", "seconds", "count", "speedup", "start"})
OWN = {
    "file": frozenset({"pipeline", "file", "topic"}),
    FLIGHTS: COMMON | {"end", "journal", "mischief"},
    "generator": COMMON | {"rate"},
}
"""The options that mean something, by where the records come from."""
OF = {"file": "a file", FLIGHTS: "the year 2013", "generator": "a generator"}


@click.command()
@click.argument("pipeline")
@click.option("--rate", type=float, default=100.0, show_default=True, help="generators: records a second.")
@click.option(
    "--seed",
    type=int,
    help="Seed of the generator: the same seed gives the same records. [default: 1; flights: 2013]",
)
@click.option("--count", type=click.IntRange(min=1), help="Number of rows at most.")
@click.option(
    "--seconds",
    type=float,
    help="generators: seconds to generate records for (default: 60); flights: let the year take so long (default: as "
    "fast as it goes).",
)
@click.option("--speedup", type=float, help="How many times faster than the clock event time runs.")
@click.option(
    "--from", "start", help="generators: when event time begins (default: now); flights: the first day."
)
@click.option("--to", "end", help="flights: last day (exclusive).")
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    default=Path("journal.jsonl"),
    show_default=True,
    help="flights: file to write what was sent to.",
)
@click.option(
    "--mischief/--no-mischief", default=True, show_default=True, help="flights: late, repeated, bad records."
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="File with one record per line, sent unchanged; - for stdin.",
)
@click.option(
    "--topic",
    default="",
    help="With --file: the topic to send to; a pipeline of several sources needs it. [default: the pipeline's first]",
)
@click.pass_context
def produce(context: click.Context, /, pipeline: str, file: Path | None, topic: str, **options: Any) -> None:
    """Send records to a pipeline's topic: those of a file, the flights of 2013, or generated ones.

    `flights` replays the year; each pipeline of include/examples has a generator.
    """
    from seamline.local.generators import GENERATORS

    source = "file" if file is not None else FLIGHTS if pipeline == FLIGHTS else "generator"
    require_applicable_options(context, source)
    if file is not None:
        from_file(pipeline, file, topic)
    elif pipeline == FLIGHTS:
        send_flights(pipeline, options)
    elif pipeline in GENERATORS:
        send_generated_records(pipeline, options)
    else:
        names = ", ".join([*GENERATORS, FLIGHTS])
        raise click.UsageError(f"--file is required: {pipeline} has no generator; only {names} have one.")


def require_applicable_options(context: click.Context, source: str) -> None:
    """Refuse an option that would do nothing."""
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in OWN[source]:
            raise click.UsageError(f"{option.opts[0]} does not apply to records of {OF[source]}.")


def send_generated_records(name: str, options: Mapping[str, Any]) -> None:
    """Send what the generator of a shipped pipeline makes, at its rate."""
    from seamline.kafka.connections import read_airflow_connection
    from seamline.lake.tables.decided import find_connection
    from seamline.local.generators import GENERATORS, Load
    from seamline.local.sending import send_records

    compiled, layout = open_pipeline(name)
    declared, generator = compiled.definition, GENERATORS[name]
    topics = ", ".join(generator.topics)
    if not set(generator.topics) <= set(declared.topics):
        raise NotFound(
            f"{name} reads {', '.join(declared.topics)}; its generator writes {topics}.",
            hint="the generator matches the definition in include/examples; send your own records with --file.",
        )
    seed, rate = 1 if options["seed"] is None else options["seed"], options["rate"]
    start = parse_moment(options["start"]) if options["start"] else datetime.now(UTC).replace(microsecond=0)
    count = options["count"] or int(rate * (options["seconds"] or 60))
    load = Load(seed, rate, count, start)
    kinds = send_records(
        read_airflow_connection(find_connection(declared.connection, layout)),
        generator.topic,
        generator.records(load),
        speedup=options["speedup"] or 1.0,
        on_progress=show_send_progress if sys.stderr.isatty() else None,
    )
    click.echo(
        f"Sent {format_kind_counts(kinds)} to {topics} (--seed {seed} --from {format_utc_instant(start)})."
    )


def send_flights(name: str, options: Mapping[str, Any]) -> None:
    """Send the flights of 2013, and journal them."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import read_airflow_connection
    from seamline.lake.tables.decided import find_connection
    from seamline.local.flights import Span, replay_flights

    compiled, layout = open_pipeline(name)
    declared = compiled.definition
    connection = read_airflow_connection(find_connection(declared.connection, layout))
    start, end = (parse_moment(each) if each else None for each in (options["start"], options["end"]))
    with TopicAdmin(connection) as admin:
        partitions = len(admin.partitions(declared.topics[0]))
    sent = replay_flights(
        connection,
        declared.topics[0],
        partitions,
        options["journal"],
        seconds=options["seconds"],
        speedup=options["speedup"],
        span=Span(start, end),
        limit=options["count"],
        mischief=options["mischief"],
        seed=2013 if options["seed"] is None else options["seed"],
        on_progress=show_send_progress if sys.stderr.isatty() else None,
    )
    click.echo(
        f"Sent in {sent.seconds:.1f} s: {format_kind_counts(sent.kinds)}. Journal: {options['journal']}"
    )


def format_kind_counts(kinds: Mapping[str, int]) -> str:
    """Say how many records of each kind there were."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def show_send_progress(sent: int, clock: datetime) -> None:
    """Show how far the sender is."""
    click.echo(f"\r{sent} records, {clock.astimezone(UTC):%Y-%m-%d %H:%M}", nl=False, err=True)


def from_file(name: str, source: Path, topic: str) -> None:
    """Send each line of a file as one record, as it is; to the first topic of a pipeline of one source by default."""
    from seamline.kafka.connections import read_airflow_connection
    from seamline.kafka.produce import RecordWriter
    from seamline.lake.tables.decided import find_connection

    compiled, layout = open_pipeline(name)
    declared = compiled.definition
    if not declared.kafka_topics:
        raise NotFound(
            f"{name} reads no topic, but Delta tables.",
            hint="append to the table by the engine that writes it.",
        )
    if not topic and declared.sources[1:]:
        raise BadRange(
            f"{name} has {len(declared.sources)} sources.",
            hint=f"say to which topic the records go: --topic, one of {', '.join(declared.kafka_topics)}.",
        )
    to = topic or declared.kafka_topics[0]
    if to not in declared.kafka_topics:
        raise NotFound(
            f"{name} does not read topic {to!r}.", hint=f"it reads {', '.join(declared.kafka_topics)}."
        )
    if str(source) != "-" and not source.is_file():
        raise NotFound(f"There is no file {source}.", hint="pass the path of a file, or - for stdin.")
    count = 0
    with (
        RecordWriter(read_airflow_connection(find_connection(declared.connection, layout))) as writer,
        click.open_file(str(source), "rb") as lines,
    ):
        for line in lines:
            if value := line.rstrip(b"\r\n"):
                writer.send(to, value=value)
                count += 1
    click.echo(f"Sent {count} records to {to}.")


COMMANDS = (produce,)
