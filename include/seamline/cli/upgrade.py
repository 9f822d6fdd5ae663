"""The command that takes a changed view from its edit to its flip."""

from __future__ import annotations

import sys

import click

from seamline.cli.building import execute_plan, reprocess_old_records
from seamline.cli.context import open_pipeline, parse_range
from seamline.model.errors import CertificateFailed
from seamline.plan.wording.plan_text import format_plan


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option("--from", "start", help="First instant to compare, UTC.")
@click.option("--to", "end", help="Last instant to compare, UTC (exclusive).")
@click.option(
    "--dry-run", is_flag=True, help="Build nothing; print what is missing, and compare what exists."
)
@click.option(
    "--via-airflow", is_flag=True, help="Build nothing here; print the backfills to start in Airflow."
)
@click.option("--approve", is_flag=True, help="Build a plan that needs approval (approve_above).")
@click.option("--flip", is_flag=True, help="Serve the new version afterwards, in one commit.")
@click.option("--format", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows that differ.")
def upgrade(
    view: str,
    start: str | None,
    end: str | None,
    dry_run: bool,
    via_airflow: bool,
    approve: bool,
    flip: bool,
    format: str,
    limit: int,
) -> None:
    """Build a changed view beside the served version, and show which published numbers would change, and how much.

    Rows that differ are written to stdout, all else to stderr. Without --flip nothing that is served changes.
    """
    from seamline.lake.publish.flipping import flip_view
    from seamline.model.time.intervals import merge_intervals
    from seamline.serve.query import rows_written
    from seamline.serve.upgrades import compare_versions as compared
    from seamline.serve.upgrades import find_upgrade_versions, format_upgrade, to_build

    name, _, view_name = view.partition(".")
    pipeline, layout = open_pipeline(name)
    old, new = find_upgrade_versions(pipeline, layout, view_name)
    if old.id == new.id:
        click.echo(f"{view} is served as its definition has it, version {new.fingerprint}.", err=True)
        return
    if not (dry_run or via_airflow):
        reprocess_old_records(pipeline, layout, err=True)
    plan = to_build(pipeline, layout, new)
    click.echo("\n".join(format_plan(plan)), err=True)
    if plan.builds and via_airflow:
        for each in merge_intervals(build.interval for build in plan.builds):
            click.echo(f"seamline backfill {name} {each.start:%Y-%m-%dT%H:%M} {each.end:%Y-%m-%dT%H:%M}")
        return
    failed = None
    if plan.builds and not dry_run:
        try:
            why = f"upgrade of {view} to version {new.fingerprint}"
            execute_plan(pipeline, layout, plan, why, approve=approve, err=True)
        except CertificateFailed as red:
            failed = red
    found = compared(pipeline, layout, old, new, parse_range(start, end))
    if found.difference is not None:
        rows_written(found.difference.rows.slice(0, limit), format, sys.stdout)
    click.echo("\n".join(format_upgrade(found)), err=True)
    if failed is not None:
        raise failed
    if flip and not dry_run:
        flip_view(pipeline, layout, view_name, to=new.fingerprint)
        click.echo(f"{view} is served as version {new.fingerprint}.", err=True)
        click.echo(f"Back: seamline flip {view} --to {old.fingerprint}", err=True)
    else:
        click.echo(f"Served as before. Serve it: seamline flip {view} --to {new.fingerprint}", err=True)


COMMANDS = (upgrade,)
