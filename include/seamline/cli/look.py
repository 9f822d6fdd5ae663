"""Commands that only look: check, query, explain, compare, status, and others."""

from __future__ import annotations

import io
import stat
import sys
import uuid
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, Unpack

import click

from seamline.cli.context import load_configured_catalog, open_pipeline, parse_name_values
from seamline.model.compile.contracts.kept_contracts import list_broken_contracts
from seamline.model.compile.processes.lawfulness import list_broken_laws
from seamline.model.errors import DefinitionError
from seamline.model.protocol.read_request import ReadOptions
from seamline.model.time.intervals import parse_moment
from seamline.plan.spelling import format_quantity
from seamline.plan.wording.source_text import list_source_lines

DRAWN = 1_000
"""Rows of a table at most, if nobody says how many."""


@click.command()
def check() -> int:
    """List every definition and all problems, broken contracts too; exit code 3 if there are any."""
    found = load_configured_catalog()
    for name, pipeline in sorted(found.pipelines.items()):
        definition = pipeline.definition
        click.echo(f"{name}  {definition.origin.file}:{definition.origin.line}")
        for line in list_source_lines(definition):
            click.echo(f"  {line}")
        for view in pipeline.views:
            keys = ", ".join(key.name for key in view.keys) or "no keys"
            of = f"of {', '.join(view.of)} " if view.of else ""
            click.echo(f"  {view.qualified}  {of}by {keys}, {view.window}, version {view.fingerprint}")
    pipelines = found.pipelines.values()
    problems = [*found.problems]
    for wrong in (list_broken_laws, list_broken_contracts):
        problems += chain.from_iterable(map(wrong, pipelines))
    for problem in problems:
        click.echo(f"\n{problem}", err=True)
    if problems:
        click.echo(f"\n{format_quantity(len(problems), 'problem')}.", err=True)
        return DefinitionError.exit_code
    click.echo(f"{format_quantity(len(found.pipelines), 'pipeline')}, no problem.")
    return 0


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option("--where", help="Condition on the keys, in Spark SQL: \"carrier = 'UA'\".")
@click.option("--from", "start", help="First window start, UTC.")
@click.option("--to", "end", help="End of the window starts, UTC (exclusive).")
@click.option("--as-of", help="Answer from what is published now, with events up to this epoch or instant.")
@click.option("--served-at", help="Answer as was answered at this instant, from what was published then.")
@click.option(
    "--version", default="", help="The fingerprint of a version; the served one answers if it is not given."
)
@click.option("--side", type=click.Choice(["merged", "batch", "speed"]), default="merged", show_default=True)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    type=click.Choice(["early", "complete", "late"]),
    help="Keep rows whose window is open, closed, or closed and corrected since; several are possible.",
)
@click.option(
    "--format",
    type=click.Choice(["table", "json", "csv", "parquet", "arrow"]),
    default="table",
    show_default=True,
    help="All but table come batch by batch, of any size.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; parquet and arrow need one.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Number of rows at most.")
def query(
    view: str,
    where: str | None,
    format: str,
    out: Path | None,
    limit: int | None,
    **options: Unpack[ReadOptions],
) -> None:
    """Show the merged answer of a view; up to where it is complete goes to stderr."""
    if format in ("parquet", "arrow") and out is None:
        raise click.UsageError(f"--format {format} needs --out FILE.")
    from seamline.serve.query import format_answer_footer, rows_written
    from seamline.serve.read import read
    from seamline.serve.streamed import encode_answer_stream, stream_answer

    if format == "table":
        answer = read(view, where, format="answer", **options)
        rows = answer.table if limit is None else answer.table.slice(0, limit)
        drawn = io.StringIO()
        rows_written(rows, format, drawn if out else sys.stdout)
        if out:
            write_pieces([drawn.getvalue().encode()], out)
    else:
        stream = stream_answer(view, where, **options)
        write_pieces(encode_answer_stream(stream, format, limit), out)
        answer = stream.told()
    click.echo(format_answer_footer(answer), err=True)


def write_pieces(pieces: Iterable[bytes], out: Path | None) -> None:
    """Write pieces to a file, which is there when it is whole, or print them.

    Through a link, and to what is no file, such as a pipe or a device, they are written as they come.
    """
    if out is None:
        sys.stdout.buffer.writelines(pieces)
    elif out.is_symlink() or (out.exists() and not out.is_file()):
        with open_to_write(out, "wb") as sink:
            sink.writelines(pieces)
    else:
        write_whole(pieces, out)


def write_whole(pieces: Iterable[bytes], out: Path) -> None:
    """Write a file beside the one that it replaces, whose mode it takes."""
    draft = out.with_name(f"{out.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with open_to_write(draft, "xb") as sink:
            if out.exists():
                draft.chmod(stat.S_IMODE(out.stat().st_mode))
            sink.writelines(pieces)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)


def open_to_write(file: Path, mode: Literal["wb", "xb"]) -> BinaryIO:
    """Open a file; a ClickException says why it cannot be written."""
    try:
        return file.open(mode)
    except OSError as error:
        raise click.FileError(str(file), hint=error.strerror) from error


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option("--key", "keys", multiple=True, metavar="NAME=VALUE", help="One for each key column.")
@click.option("--window", default="", help="The window's start, UTC; START/END where several start there.")
@click.option("--page", type=click.IntRange(min=0), default=0, show_default=True, help="Page of master rows.")
@click.option(
    "--rows", type=click.IntRange(min=0), default=10, show_default=True, help="Master rows per page."
)
@click.option("--no-targets", is_flag=True, help="Do not ask the targets of sinks what they hold.")
def explain(view: str, keys: tuple[str, ...], window: str, page: int, rows: int, no_targets: bool) -> int:
    """Explain one number: generation, slices, rows in the master, where it was sent.

    Exit code 1 if they do not add up.
    """
    from seamline.serve.explain import explain as take_apart
    from seamline.serve.explanation import format_explanation
    from seamline.sinks.audit.sent_numbers import list_sent_numbers
    from seamline.sinks.audit.sent_words import format_sent_numbers
    from seamline.sinks.targets import open_target

    found = take_apart(view, parse_name_values(keys), window, page=page, size=rows)
    click.echo("\n".join(format_explanation(found)))
    name, _, view_name = view.partition(".")
    opening = None if no_targets else open_target
    for line in format_sent_numbers(list_sent_numbers(*open_pipeline(name), view_name, found.row, opening)):
        click.echo(line)
    return 0 if found.proven else 1


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option(
    "--with",
    "table",
    required=True,
    help="The other job's table: a folder of Delta, Parquet, CSV or JSON lines, or a file, here or in a bucket.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="NAME=COLUMN",
    help="The table's column for a key, window_start or window_end. [default: the column of the same name]",
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME=COLUMN",
    help="The table's column for a measure. [default: likewise]",
)
@click.option("--from", "start", help="First window start, UTC. [default: the table's first]")
@click.option(
    "--to", "end", help="End of the window starts, UTC (exclusive). [default: after the table's last]"
)
@click.option("--written-at", help="When the table was made, UTC. [default: when it was last written]")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=1e-9,
    show_default=True,
    help="Relative difference up to which doubles count as equal.",
)
@click.option("--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Number of rows at most. [default: 1,000 of a table, else all]",
)
def compare(
    view: str,
    table: str,
    keys: tuple[str, ...],
    measures: tuple[str, ...],
    start: str | None,
    end: str | None,
    written_at: str | None,
    tolerance: float,
    format: str,
    limit: int | None,
) -> int:
    """Compare the answer with another job's table.

    Prints the rows that differ; a summary with the causes goes to stderr. Exit code 1 if a difference is unexplained.
    """
    from seamline.lake.audit.table_comparing import compare_with_table
    from seamline.lake.tables.view_versions import find_view
    from seamline.model.protocol.read_request import ReadRequest
    from seamline.serve.query import rows_written
    from seamline.serve.table_differences import build_differing_rows, format_table_comparison

    name, _, view_name = view.partition(".")
    pipeline, layout = open_pipeline(name)
    found = compare_with_table(
        pipeline,
        find_view(pipeline, layout, view_name),
        layout,
        table,
        names=parse_name_values((*keys, *measures)),
        request=ReadRequest.parse(start=start, end=end),
        tolerance=tolerance,
        written_at=parse_moment(written_at) if written_at else None,
    )
    rows = build_differing_rows(found)
    shown = rows.slice(0, limit or (DRAWN if format == "table" else rows.num_rows))
    rows_written(shown, format, sys.stdout)
    click.echo("\n".join(format_table_comparison(found)), err=True)
    if rows.num_rows > shown.num_rows:
        click.echo(f"  {rows.num_rows - shown.num_rows} more rows that differ are not shown.", err=True)
    return 1 if found.unexplained else 0


@click.command()
@click.argument("pipelines", metavar="[PIPELINE]...", nargs=-1)
def status(pipelines: tuple[str, ...]) -> None:
    """Show the status of each pipeline: epoch, edge, watermark, stream, intervals by state."""
    from seamline.serve.pipeline_status import status_of

    for name in pipelines or sorted(load_configured_catalog().pipelines):
        click.echo("\n".join(status_of(*open_pipeline(name))))


@click.command()
@click.argument("pipeline")
def lookups(pipeline: str) -> None:
    """Show the look-ups: of pinned ones, which epochs and intervals have rows made with each version."""
    from seamline.serve.lookup_versions import lookups_of

    click.echo("\n".join(lookups_of(*open_pipeline(pipeline))))


@click.command()
@click.argument("name", metavar="PIPELINE.SIDE")
@click.option("--format", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), help="Number of rows at most.")
def side(name: str, format: str, limit: int | None) -> None:
    """Show the records that a pipeline routes to a named side."""
    from seamline.serve.query import rows_written
    from seamline.serve.side import side as read

    rows_written(read(name).slice(0, limit), format, sys.stdout)


COMMANDS = (check, query, explain, compare, status, lookups, side)
