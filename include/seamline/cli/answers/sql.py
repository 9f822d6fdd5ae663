"""``seamline sql``: a question in SQL over merged views, or these views for another engine."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import click

from seamline.cli.context import open_pipeline
from seamline.cli.look import write_pieces
from seamline.plan.spelling import format_quantity

NAME = re.compile(r"\w+(\.\w+)?", re.ASCII)
ENGINE = "duckdb"
MOST = 10**9
"""Rows that may be asked for."""


@click.command()
@click.argument("text", metavar="SELECT...|PIPELINE[.VIEW]")
@click.option("--from", "start", help="First window start, UTC, of each view.")
@click.option("--to", "end", help="End of the window starts, UTC (exclusive).")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=10_000, show_default=True, help="Rows at most."
)
@click.option("--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark", "trino"]),
    help="For a pipeline or a view: for which engine its SQL is printed; duckdb by default.",
)
def sql(
    text: str,
    start: str | None,
    end: str | None,
    limit: int,
    format: str,
    out: Path | None,
    engine: str | None,
) -> None:
    """Answer a SELECT over merged views, in DuckDB's SQL; up to where each is complete goes to stderr.

    A view is named PIPELINE.VIEW. With the name of a pipeline or a view instead of a SELECT, print SQL by which another
    engine reads the serving tables.
    """
    if NAME.fullmatch(text.strip()):
        print_engine_views(text.strip(), engine or ENGINE)
        return
    if engine:
        raise click.UsageError("--engine goes with PIPELINE[.VIEW], not with a SELECT.")
    from seamline.serve.query import format_answer_footer, rows_written
    from seamline.serve.sql.asked import sql as answer_sql
    from seamline.serve.sql.sql_answer import writing_values

    found = answer_sql(text, start=start, end=end, limit=limit)
    drawn = io.StringIO()
    with writing_values():
        rows_written(found.rows, format, drawn if out else sys.stdout)
    if out:
        write_pieces([drawn.getvalue().encode()], out)
    if found.more:
        click.echo(f"The first {format_quantity(limit, 'row')}; --limit gives more.", err=True)
    for answer in found.views:
        click.echo(f"{answer.view}: {format_answer_footer(answer)}", err=True)


def print_engine_views(name: str, engine: str) -> None:
    """Print SQL views for another engine, over the serving tables."""
    from seamline.lake.tables.view_versions import find_view
    from seamline.serve.bi import bi_views_sql

    pipeline, _, view = name.partition(".")
    compiled, layout = open_pipeline(pipeline)
    views = [find_view(compiled, layout, view)] if view else compiled.views
    for line in bi_views_sql(compiled, layout, views, engine):
        click.echo(line)


COMMANDS = (sql,)
