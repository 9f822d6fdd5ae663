"""The command that brings tables to another format, or a warehouse to another place."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor, load_configured_pipeline
from seamline.model.errors import BadRange, StoreUnavailable
from seamline.model.protocol.warehouse_names import SHARED
from seamline.plan.wording.move_text import format_move_plan, format_move_report

if TYPE_CHECKING:
    from seamline.lake.store.locations import Location
    from seamline.model.protocol.moving import MovePlan, MoveReport


@click.command()
@click.argument("pipeline", required=False)
@click.option(
    "--to",
    metavar="PLACE",
    help="Move the shared warehouse, or PIPELINE's own: to a folder, or a URL such as s3://lake/warehouse.",
)
@click.option("--dry-run", is_flag=True, help="With --to: show what would be copied; nothing is changed.")
@click.option(
    "--undo", is_flag=True, help="Take back the move of this warehouse, unless the new place was used since."
)
@click.option(
    "--lost",
    is_flag=True,
    help="With --undo: the new place is gone or given up. First end every process that still runs the move.",
)
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def migrate(pipeline: str | None, to: str | None, dry_run: bool, undo: bool, lost: bool, format: str) -> None:
    """Bring the tables of PIPELINE to this release's format; with --to, move a whole warehouse to another place.

    --to and --undo are about the warehouse that SEAMLINE_WAREHOUSE names; with a PIPELINE, about the one that its own
    variable names, and every other pipeline in it. Stop the streams first; no build may run. A move that was
    interrupted goes on when it is run again. The new place can be used once each file has the same SHA-256 there, and
    each table is the same in both places.
    """
    for wrong, said in (
        (pipeline == "", "PIPELINE is empty. Leave it out to mean the shared warehouse."),
        (to == "", "--to is empty: name a PLACE."),
        (to and undo, "--to moves a warehouse, and --undo takes a move back: pass one of them."),
        (dry_run and not to, "--dry-run needs --to PLACE, and shows what that would copy."),
        (lost and not undo, "--lost needs --undo."),
        (format != "text" and not to, f"--format {format} needs --to PLACE."),
        (not (pipeline or to or undo), "name a PIPELINE, or pass --to PLACE, or --undo."),
    ):
        if wrong:
            raise click.UsageError(said)
    if undo:
        undo_warehouse_move(find_moving_warehouse(pipeline), lost=lost)
    elif to:
        move_to_place(find_moving_warehouse(pipeline), to, format, dry_run=dry_run)
    elif pipeline:
        migrate_format(pipeline)


def find_moving_warehouse(pipeline: str | None) -> Location:
    """Find the warehouse that is meant: the shared one, or a pipeline's own; BadRange if it has none."""
    from seamline.lake.storage.layout import find_warehouse, name_warehouse, shared_warehouse

    if not pipeline:
        return shared_warehouse()
    found = find_warehouse(pipeline)
    if SHARED in name_warehouse(found).variables:
        load_configured_pipeline(pipeline)
        raise BadRange(
            f"{pipeline} has no warehouse of its own: it is in the shared one at {found}.",
            hint="`seamline migrate --to PLACE` moves that one, with all of its pipelines.",
        )
    return found


def migrate_format(pipeline: str) -> None:
    """Bring a pipeline's tables to this release's format."""
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.manifest_table import FORMAT
    from seamline.lake.tables.table_format import migrate as brought

    done = brought(locate_tables(load_configured_pipeline(pipeline).name), actor=current_actor())
    for name in done:
        click.echo(f"{pipeline}: {name}.")
    if not done:
        click.echo(f"{pipeline}: its tables are of format {FORMAT} already; nothing was changed.")


def move_to_place(source: Location, to: str, format: str, *, dry_run: bool) -> None:
    """Move a warehouse, and say what was done."""
    from seamline.lake.move.moving import move_warehouse, plan_move
    from seamline.lake.storage.layout import name_warehouse
    from seamline.lake.store.locations import parse_location

    place = parse_location(to)
    done: MovePlan | MoveReport
    try:
        if dry_run:
            done = plan_move(source, place)
            lines = format_move_plan(done)
        else:
            done = move_warehouse(source, place, actor=current_actor(), say=partial(click.echo, err=True))
            lines = format_move_report(done, name_warehouse(source))
    except StoreUnavailable as error:
        raise StoreUnavailable(error.message, hint="run this again: it goes on.") from error
    click.echo(json.dumps(vars(done)) if format == "json" else "\n".join(lines))


def undo_warehouse_move(source: Location, *, lost: bool) -> None:
    """Take a move back."""
    from seamline.lake.move.undoing import undo_move

    mark = undo_move(source, lost=lost)
    click.echo(f"{source} is open again; the move to {mark.to} is taken back.")
    click.echo("`seamline stream start` starts its streams. What was copied can be deleted.")


COMMANDS = (migrate,)
