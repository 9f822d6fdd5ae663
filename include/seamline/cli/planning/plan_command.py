"""The command that shows what a run would build, and what a change of definitions would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import open_pipeline, parse_range
from seamline.model.errors import DefinitionError
from seamline.plan.spelling import format_quantity
from seamline.plan.wording.plan_text import format_plan, format_plan_table, serialize_plan
from seamline.plan.wording.source_text import list_time_bounds

if TYPE_CHECKING:
    from seamline.plan.batch.batch_plan import BatchPlan
    from seamline.plan.revision.preview import ViewPreview
    from seamline.plan.revision.revision_plan import RevisionPlan

BUILDS, DIFFERS = 24, 25
"""Exit codes with --exit-code: something is to be built; published numbers would change."""


@dataclass(frozen=True)
class Shown:
    """How a plan is shown."""

    format: str
    """One of text, markdown and json."""
    preview: bool
    """Whether published numbers are compared."""
    sample: int
    """Over how many intervals of a view at most."""
    examples: bool
    """Whether rows are shown, with their keys."""


@click.command()
@click.argument("pipeline", required=False)
@click.option("--from", "start", help="First interval, UTC.")
@click.option("--to", "end", help="End of the range, UTC (exclusive).")
@click.option(
    "--dirty", is_flag=True, help="Also build the dirty intervals: those with rows newer than their cut."
)
@click.option("--why", is_flag=True, help="Every reason of every interval, view by view.")
@click.option("--diff", "base", metavar="BASE", help="Compare the definitions with those of a git revision.")
@click.option(
    "--preview", is_flag=True, help="Show which published numbers would change, over a few intervals."
)
@click.option(
    "--sample", type=click.IntRange(1, 100), default=5, show_default=True, help="So many intervals."
)
@click.option(
    "--examples/--no-examples", default=True, show_default=True, help="Rows that change most, with keys."
)
@click.option("--format", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.option(
    "--exit-code", is_flag=True, help="24 if something is to be built, 25 if published numbers would change."
)
def plan(
    pipeline: str | None,
    start: str | None,
    end: str | None,
    dirty: bool,
    why: bool,
    base: str | None,
    preview: bool,
    sample: int,
    examples: bool,
    format: str,
    exit_code: bool,
) -> int:
    """Show what a batch run would build now, why, and what it costs; without a range, the dirty intervals.

    With --diff: what a change of definitions since BASE means, of all pipelines or one. Nothing is changed.
    """
    shown = Shown(format, preview, sample, examples)
    if base is not None:
        if start or end or dirty or why:
            raise click.UsageError("--diff cannot be used with --from, --to, --dirty or --why.")
        return show_revision(base, pipeline, shown, exit_code=exit_code)
    if pipeline is None:
        raise click.UsageError("Name a pipeline, or a revision with --diff.")
    from seamline.lake.publish.planning import plan_run

    compiled, layout = open_pipeline(pipeline)
    asked = parse_range(start, end)
    if asked is not None:
        compiled.grid.within_life(asked, now=datetime.now(UTC))
    found = plan_run(compiled, layout, asked=asked, dirty=dirty or asked is None)
    previews: tuple[ViewPreview, ...] = ()
    if preview:
        from seamline.serve.previews.planned_previews import preview_plan

        previews = preview_plan(compiled, layout, found, sample=sample, examples=examples)
    show_plan(found, previews, format, why=why)
    if why and format == "text":
        click.echo("\n".join(list_time_bounds(compiled.definition)))
    return choose_exit_code(bool(found.builds), any(each.differs for each in previews)) if exit_code else 0


def choose_exit_code(builds: bool, differs: bool) -> int:
    """Return the exit code of a plan with --exit-code."""
    return DIFFERS if differs else BUILDS if builds else 0


def show_plan(found: BatchPlan, previews: tuple[ViewPreview, ...], format: str, *, why: bool) -> None:
    """Print a plan, and what its builds would change."""
    from seamline.plan.wording.preview_text import format_preview, format_preview_markdown, serialize_preview

    if format == "json":
        row = {**serialize_plan(found), "previews": [serialize_preview(each) for each in previews]}
        click.echo(json.dumps(row, indent=2))
    elif format == "markdown":
        click.echo(format_plan_table(found))
        for each in previews:
            click.echo("\n" + "\n".join(format_preview_markdown(each)).rstrip())
    else:
        click.echo("\n".join(format_plan(found, why=why)))
        for each in previews:
            click.echo("\n".join(format_preview(each)))


def show_revision(base: str, pipeline: str | None, shown: Shown, *, exit_code: bool) -> int:
    """Print what a change of definitions means; DefinitionError afterwards where one of them is wrong."""
    from seamline.lake.storage.layout import definitions_folder
    from seamline.local.revisions.planned_revisions import plan_revision
    from seamline.plan.wording.revision_text import (
        format_revision_markdown,
        format_revision_plan,
        serialize_revision_plan,
    )
    from seamline.runtime.interrupts import ending_as_by_ctrl_c

    with ending_as_by_ctrl_c():
        found: RevisionPlan = plan_revision(
            definitions_folder(),
            base,
            only=pipeline or "",
            preview=shown.preview,
            sample=shown.sample,
            examples=shown.examples,
        )
    if shown.format == "json":
        click.echo(json.dumps(serialize_revision_plan(found), indent=2))
    else:
        lines = format_revision_markdown if shown.format == "markdown" else format_revision_plan
        click.echo("\n".join(lines(found)))
    if found.diff.problems:
        raise DefinitionError(
            f"{format_quantity(len(found.diff.problems), 'definition')} cannot be loaded, as is said above.",
            hint="`seamline check` has the hints.",
        )
    return choose_exit_code(found.diff.builds, found.differs) if exit_code else 0


COMMANDS = (plan,)
