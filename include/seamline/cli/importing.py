"""Commands about rows of files that become part of the log: import, imports list, cancel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor, open_pipeline, parse_name_values
from seamline.model.time.intervals import parse_moment

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
    "--source", default="", help="The source, or topic, that the rows are of. [default: the only one]"
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Take a field, or _key, _value, _kafka_timestamp, _partition, _offset, from a column of another name.",
)
@click.option("--until", help="Leave rows of this event time and later to the topic, UTC.")
@click.option("--disjoint", is_flag=True, help="Declare that no row is, or will be, in the topic too.")
@click.option(
    "--version", type=click.IntRange(min=0), help="The version of a Delta table. [default: the newest]"
)
@click.option("--csv-delimiter", default=",", show_default=True, help="What is between two cells of CSV.")
@click.option("--csv-quote", default='"', show_default=True, help="What is around a cell of CSV.")
@click.option(
    "--csv-null", default="", help="The text of a cell of CSV that is NULL. [default: the empty one]"
)
@click.option("--reason", default="", help="Reason, recorded in the control log.")
@click.option(
    "--dry-run", is_flag=True, help="Show rows, bytes, and what becomes of the first rows; import nothing."
)
@click.option("--no-wait", is_flag=True, help="Ask for it, and let the stream that runs import it.")
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
    """Import rows of files into the log, each once, through the same validation as records of the topic.

    A stream that runs imports them between its epochs. Where none does, this command does it under the stream's lease.
    Rows that an earlier import has taken are left out, so the same command may be run again: after a kill it goes on.
    """
    from seamline.lake.imports.staged_rows import CsvDialect
    from seamline.supervisor.imports.import_planning import ask, draft_import
    from seamline.supervisor.imports.import_requests import ImportRequest
    from seamline.supervisor.imports.import_wording import describe_draft

    compiled, layout = open_pipeline(pipeline)
    request = ImportRequest(
        place=place,
        actor=current_actor(),
        reason=reason,
        source=source,
        columns=parse_name_values(columns),
        until=parse_moment(until) if until else None,
        version=version,
        disjoint=disjoint,
        dialect=CsvDialect(csv_delimiter, csv_quote, csv_null),
    )
    drafted = draft_import(compiled, layout, request)
    for line in describe_draft(drafted):
        click.echo(line)
    if dry_run:
        return
    if drafted.plan.rows:
        ask(drafted, layout)
        click.echo(f"import {drafted.plan.id} is asked for.")
    else:
        click.echo("nothing new is to be imported.")
    if not no_wait:
        see_through(compiled.name, layout)


@click.group()
def imports() -> None:
    """List or cancel imports of files."""


@imports.command("list")
@click.argument("pipeline")
def list_(pipeline: str) -> None:
    """Show the imports, how far each is, and what stops one."""
    from seamline.supervisor.imports.import_listing import list_import_lines

    compiled, layout = open_pipeline(pipeline)
    for line in list_import_lines(layout) or [f"{compiled.name}: nothing was imported."]:
        click.echo(line)


@imports.command()
@click.argument("pipeline")
@click.argument("id")
@click.option("--reason", required=True, help="Reason, recorded in the log.")
@click.option("--no-wait", is_flag=True, help="Let the stream that runs close it.")
def cancel(pipeline: str, id: str, reason: str, no_wait: bool) -> None:
    """Give up the rest of an import; what of it was read stays. Its other rows may be imported again."""
    from seamline.lake.tables.control_table import ControlTable
    from seamline.lake.tables.decided import decide_to_cancel

    compiled, layout = open_pipeline(pipeline)
    now = datetime.now(UTC)
    decide_to_cancel(ControlTable.ensure(layout), id, actor=current_actor(), reason=reason, now=now)
    click.echo(f"import {id} is cancelled.")
    if not no_wait:
        see_through(compiled.name, layout)


def see_through(pipeline: str, layout: Layout) -> None:
    """Wait until all imports are done, or do them, with a line each time that more is read."""
    from seamline.supervisor.imports.import_process import say_who_imports, see_imports_through

    if said := say_who_imports(pipeline, layout):
        click.echo(said)
    see_imports_through(pipeline, layout, make_teller())


def make_teller() -> Callable[[int, int], None]:
    """Make what says how far imports are, whenever that has changed."""
    said = -1

    def tell(done: int, whole: int) -> None:
        nonlocal said
        if done != said and whole:
            said = done
            click.echo(f"{done} of {whole} rows")

    return tell


COMMANDS = (import_, imports)
