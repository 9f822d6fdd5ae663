"""Commands about rows of files that become part of the log: import, imports list, cancel."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor, open_pipeline, parse_name_values
from seamline.model.time.intervals import parse_named_moment

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout


@click.command(name="import")
@click.argument("pipeline")
@click.option(
    "--from",
    "place",
    required=True,
    metavar="PATH_OR_TABLE",
    help="A Delta table, or Parquet, CSV or JSON lines: a file, a folder, or the URL of one in a bucket.",
)
@click.option(
    "--source", default="", help="The source or topic that the rows belong to. [default: the only one]"
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Read NAME from COLUMN: a field, or _key, _value, _kafka_timestamp, _partition, _offset. May be repeated.",
)
@click.option(
    "--until",
    metavar="TIME",
    help="Import only rows with an earlier event time (UTC); leave the rest to the topic.",
)
@click.option("--disjoint", is_flag=True, help="Declare that no row is, or will be, in the topic.")
@click.option(
    "--version", type=click.IntRange(min=0), help="The version of a Delta table. [default: the newest]"
)
@click.option("--csv-delimiter", default=",", show_default=True, help="Delimiter of CSV cells.")
@click.option("--csv-quote", default='"', show_default=True, help="Quote character of CSV cells.")
@click.option("--csv-null", default="", help="CSV text that stands for NULL. [default: an empty cell]")
@click.option("--reason", default="", help="Reason, recorded in the control log.")
@click.option(
    "--dry-run", is_flag=True, help="Show the plan and validate the first 1,000 rows; import nothing."
)
@click.option(
    "--no-wait",
    is_flag=True,
    help="Return once the import is requested; a running stream carries it out, else the next import.",
)
def import_(
    pipeline: str,
    place: str,
    source: str,
    columns: Sequence[str],
    until: str | None,
    disjoint: bool,
    version: int | None,
    csv_delimiter: str,
    csv_quote: str,
    csv_null: str,
    reason: str,
    dry_run: bool,
    no_wait: bool,
) -> None:
    """Import rows of files into the log, each exactly once, validated like records of the topic.

    A running stream imports them between its epochs; otherwise this command does, holding the stream's lease. Rows
    that were imported before are skipped, so the command can be repeated, and continues where it was interrupted.
    """
    from seamline.lake.imports.staged_rows import CsvDialect
    from seamline.supervisor.imports.import_listing import list_cancelled_ids, list_open_ids
    from seamline.supervisor.imports.import_planning import ask, discard, draft_import
    from seamline.supervisor.imports.import_requests import ImportRequest
    from seamline.supervisor.imports.import_wording import describe_draft

    compiled, layout = open_pipeline(pipeline)
    request = ImportRequest(
        place=place,
        actor=current_actor(),
        reason=reason,
        source=source,
        columns=parse_name_values(columns, option="--map", example="shop=store"),
        until=parse_named_moment("--until", until) if until else None,
        version=version,
        disjoint=disjoint,
        dialect=CsvDialect(csv_delimiter, csv_quote, csv_null),
    )
    if cancelled := list_cancelled_ids(layout):
        see_through(compiled.name, layout, cancelled)
    drafted = draft_import(compiled, layout, request)
    for line in describe_draft(drafted):
        click.echo(line)
    if dry_run:
        discard(drafted)
        return
    ids = [drafted.plan.id]
    if drafted.plan.rows:
        ask(drafted, layout)
        click.echo(f"requested import {drafted.plan.id}.")
    else:
        discard(drafted)
        ids = list_open_ids(layout, place)
    if not no_wait:
        see_through(compiled.name, layout, ids)


@click.group()
def imports() -> None:
    """List or cancel imports of files."""


@imports.command("list")
@click.argument("pipeline")
def list_(pipeline: str) -> None:
    """List the imports, their progress, and what is blocking them."""
    from seamline.supervisor.imports.import_listing import list_import_lines

    compiled, layout = open_pipeline(pipeline)
    for line in list_import_lines(layout) or [f"{compiled.name} has no imports."]:
        click.echo(line)


@imports.command()
@click.argument("pipeline")
@click.argument("id")
@click.option("--reason", required=True, help="Reason, recorded in the log.")
@click.option("--no-wait", is_flag=True, help="Return at once; the running stream closes the import.")
def cancel(pipeline: str, id: str, reason: str, no_wait: bool) -> None:
    """Cancel the rest of an import. Rows that were read stay in the log; the others can be imported again."""
    from seamline.lake.log.epoch_log import read_condensed_log
    from seamline.lake.tables.control_table import ControlTable
    from seamline.lake.tables.decided import decide_to_cancel

    compiled, layout = open_pipeline(pipeline)
    now, control, log = datetime.now(UTC), ControlTable.ensure(layout), read_condensed_log(layout)
    decide_to_cancel(control, id, log, actor=current_actor(), reason=reason, now=now)
    click.echo(f"import {id} is cancelled.")
    if not no_wait:
        see_through(compiled.name, layout, [id])


def see_through(pipeline: str, layout: Layout, ids: Sequence[str]) -> None:
    """Wait until imports are done, or do them, with a line whenever they are further; SIGTERM and Ctrl-C end it."""
    from seamline.runtime.stop_signals import set_when_asked
    from seamline.supervisor.imports.import_process import say_who_imports, see_imports_through

    if said := say_who_imports(pipeline, layout):
        click.echo(said)
    set_when_asked(halt := threading.Event())
    before = ""

    def tell(line: str) -> None:
        nonlocal before
        if line != before:
            before = line
            click.echo(line)

    if ids:
        see_imports_through(pipeline, layout, tell, ids=ids, halt=halt)
    if halt.is_set():
        raise click.Abort


COMMANDS = (import_, imports)
