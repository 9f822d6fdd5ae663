"""Commands about the generations of an interval: history, rollback, diff, certificate, report, publish, retention."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor, interval_of, open_pipeline
from seamline.model.errors import NotFound
from seamline.model.protocol.manifest import How
from seamline.model.time.intervals import parse_duration

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.model.time.intervals import Interval

VIEW = click.argument("view", metavar="PIPELINE.VIEW")
INTERVAL = click.argument("interval")


@click.command()
@VIEW
@INTERVAL
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def history(view: str, interval: str, format: str) -> None:
    """List every generation of INTERVAL (its start, UTC): what became of it, who built it and why."""
    from seamline.lake.publish.generation_history import list_past_generations
    from seamline.lake.tables.manifest_table import manifest_of
    from seamline.lake.tables.view_versions import find_view
    from seamline.serve.generation_lines import build_generations_table, format_generation_history
    from seamline.serve.query import rows_written

    name, _, view_name = view.partition(".")
    pipeline, layout = open_pipeline(name)
    asked, found = interval_of(pipeline, interval), find_view(pipeline, layout, view_name)
    manifest = manifest_of(layout)
    known = list_past_generations(layout, manifest, found.name, asked)
    if format == "json":
        rows_written(build_generations_table(known), "json", sys.stdout)
    else:
        click.echo("\n".join(format_generation_history(found.qualified, asked, manifest, known)))


@click.command()
@VIEW
@INTERVAL
@click.option(
    "--to", default="", help="The generation's id or a prefix of it. [default: the one published before]"
)
@click.option("--reason", required=True, help="Reason, recorded in the manifest.")
@click.option("--despite-certificate", is_flag=True, help="Serve it although it is not certified.")
@click.option(
    "--release",
    is_flag=True,
    help="Release the interval, so that dirty runs build it again; no number changes.",
)
def rollback(
    view: str, interval: str, to: str, reason: str, despite_certificate: bool, release: bool
) -> None:
    """Serve an earlier generation of INTERVAL; dirty runs leave the interval alone until it is released."""
    if release and (to or despite_certificate):
        raise click.UsageError(
            "--release changes no number: it cannot be used with --to or --despite-certificate."
        )
    from seamline.lake.publish.generation_history import release_interval, roll_back_interval
    from seamline.plan.publish.publication import Decision

    name, _, view_name = view.partition(".")
    pipeline, layout = open_pipeline(name)
    asked = interval_of(pipeline, interval)
    if release:
        release_interval(pipeline, layout, view_name, asked, actor=current_actor(), reason=reason)
        click.echo(f"{view} {asked.id} is released: the next dirty run builds it if anything came since.")
        return
    decision = Decision(current_actor(), reason, rollback=True, despite=despite_certificate)
    with report_rollback(pipeline, layout, view_name, asked, reason):
        done = roll_back_interval(pipeline, layout, view_name, asked, to=to, decision=decision)
    assert done.how is How.ROLLBACK
    click.echo(
        f"{view} {asked.id} is served from generation {done.generation}, cut {done.epoch}.\n"
        f"It is held: no dirty run builds it. To let them: seamline rollback {view} {interval} --release "
        f"--reason ...; to build it: seamline run {name} --from ... --to ..."
    )


def report_rollback(
    pipeline: CompiledPipeline, layout: Layout, view: str, interval: Interval, reason: str
) -> AbstractContextManager[None]:
    """Return what tells the lineage of a rollback; without a server nothing of it is imported."""
    from seamline.lineage.configuration import is_configured

    if not is_configured():
        return nullcontext()
    from seamline.lineage.batch_reporter import report_task
    from seamline.lineage.rollback_lineage import RollbackLineage

    return report_task(RollbackLineage(pipeline, layout, view, interval, reason).look)


@click.command()
@VIEW
@INTERVAL
@click.option(
    "--from",
    "earlier",
    default="",
    help="The earlier generation. [default: the one published before the other]",
)
@click.option("--to", "later", default="", help="The generation. [default: the served one]")
@click.option("--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--limit", type=click.IntRange(min=1), help="Number of rows at most.")
def diff(view: str, interval: str, earlier: str, later: str, format: str, limit: int | None) -> None:
    """Compare two generations of INTERVAL by key and window: rows that differ, and by how much (that on stderr)."""
    from seamline.serve.generation_differences import compare_two_generations, format_difference
    from seamline.serve.query import rows_written

    name, _, view_name = view.partition(".")
    pipeline, layout = open_pipeline(name)
    asked = interval_of(pipeline, interval)
    found = compare_two_generations(pipeline, layout, view_name, asked, earlier=earlier, later=later)
    rows = found.difference.rows
    rows_written(rows if limit is None else rows.slice(0, limit), format, sys.stdout)
    one, other = found.before.generation, found.after.generation
    click.echo(f"{one.id} (cut {one.cut}) -> {other.id} (cut {other.cut})", err=True)
    click.echo("\n".join(format_difference(found.difference)), err=True)


@click.command()
@VIEW
@INTERVAL
@click.option("--generation", default="", help="The generation. [default: the served one, else the newest]")
def certificate(view: str, interval: str, generation: str) -> int:
    """Show the certificate of a generation of INTERVAL and where its report is; exit code 1 if it is not green."""
    from seamline.lake.publish.generation_history import list_past_generations
    from seamline.lake.tables.manifest_table import manifest_of
    from seamline.lake.tables.view_versions import find_view
    from seamline.plan.publish.generation_fates import find_generation, select_main_generation
    from seamline.quality.quality_pages import format_certificate

    name, _, view_name = view.partition(".")
    pipeline, layout = open_pipeline(name)
    asked, found = interval_of(pipeline, interval), find_view(pipeline, layout, view_name)
    known = list_past_generations(layout, manifest_of(layout), found.name, asked)
    one = find_generation(known, generation) if generation else select_main_generation(known)
    if one is None or one.certificate is None:
        what = f"Generation {one.generation.id}" if one else f"{view} {asked.id}"
        raise NotFound(f"{what} has no certificate.", hint="seamline history lists the generations.")
    click.echo("\n".join(format_certificate(one.certificate)))
    report = layout.table(one.certificate.made.report or "reports") if one.certificate.made.report else None
    if report and report.exists():
        click.echo(f"  report {report}")
    return 0 if one.certificate.passed else 1


@click.command()
@click.argument("pipeline")
@click.option("--run", required=True, help="The id of the run; seamline history shows it.")
def report(pipeline: str, run: str) -> None:
    """Render the pages of Great Expectations in the report of a run, and print the path of its first page."""
    from seamline.quality.data_docs import list_pages, render_page

    _, layout = open_pipeline(pipeline)
    folder = layout.report(run)
    if not (folder / "index.html").is_file():
        raise NotFound(
            f"Run {run!r} of {pipeline} has no report.", hint="seamline history shows the ids of runs."
        )
    for page in list_pages(folder):
        render_page(folder, page)
    click.echo(folder / "index.html")


@click.command()
@click.argument("pipeline")
@click.option("--run", required=True, help="The id of the run; seamline history shows it.")
@click.option(
    "--interval",
    "intervals",
    multiple=True,
    help="Only this interval, by its start; may be given several times.",
)
@click.option(
    "--despite-certificate",
    is_flag=True,
    help="Publish what is not certified too; it is marked so until it is replaced.",
)
@click.option("--approve", is_flag=True, help="Publish what changes more than approve_change= lets it too.")
@click.option(
    "--reason",
    default="",
    help="Reason, recorded in the manifest; required with --despite-certificate and --approve.",
)
def publish(
    pipeline: str, run: str, intervals: tuple[str, ...], despite_certificate: bool, approve: bool, reason: str
) -> None:
    """Publish what a run has built, as the DAG's last task does."""
    if (despite_certificate or approve) and not reason:
        raise click.UsageError("--despite-certificate and --approve need --reason.")
    from seamline.cli.building import require_approved_changes
    from seamline.plan.publish.publication import Decision
    from seamline.tracing.traced_publication import publish_traced

    compiled, layout = open_pipeline(pipeline)
    only = [interval_of(compiled, each).id for each in intervals]
    decided = despite_certificate or approve
    decision = (
        Decision(current_actor(), reason, despite=despite_certificate, approved=approve) if decided else None
    )
    done = publish_traced(compiled, layout, run, decision=decision, only=only)
    for each in done.statements:
        note = f" {each.note}" if each.note else ""
        click.echo(f"published {each.view} {each.interval} {each.generation} cut {each.epoch}{note}")
    for interval, why in done.held_back.items():
        click.echo(f"held back {interval}: {why}")
    if not done.statements and not done.waiting:
        click.echo("Nothing was published: it had been before.")
    require_approved_changes(layout, run, done)


@click.command()
@click.argument("pipeline")
@click.option(
    "--keep-generations",
    "keep",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="How many earlier published generations to keep for a rollback.",
)
@click.option("--older-than", help='Keep what was replaced in the last "30 days".')
@click.option("--delete", is_flag=True, help="Forget them now; upkeep deletes their files a day later.")
@click.option("--reason", default="", help="Reason, recorded in the manifest; required with --delete.")
def retention(pipeline: str, keep: int, older_than: str | None, delete: bool, reason: str) -> None:
    """Show which generations may be deleted, and why the others may not; nothing is changed without --delete."""
    if delete and not reason:
        raise click.UsageError("--delete needs --reason.")
    from seamline.lake.maintain.retention import (
        clean_generations,
        forget_generations,
        list_retention_verdicts,
    )
    from seamline.lake.tables.manifest_table import manifest_of
    from seamline.serve.generation_lines import format_retention

    _, layout = open_pipeline(pipeline)
    age = parse_duration(older_than) if older_than else None
    found = list_retention_verdicts(
        layout, manifest_of(layout), keep=keep, older_than=age, now=datetime.now(UTC)
    )
    click.echo("\n".join(format_retention(found)))
    if delete:
        done = forget_generations(layout, keep=keep, older_than=age, actor=current_actor(), reason=reason)
        click.echo(f"Forgotten: {len(done)} generations.")
        click.echo(str(clean_generations(layout, manifest_of(layout))))


COMMANDS = (history, rollback, diff, certificate, report, publish, retention)
