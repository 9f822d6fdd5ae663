"""Commands about the generations of an interval: history, rollback."""

from __future__ import annotations

import sys

import click

from seamline.cli.context import actor, interval_of, opened
from seamline.model.manifest import How

VIEW = click.argument("view", metavar="PIPELINE.VIEW")
INTERVAL = click.argument("interval")


@click.command()
@VIEW
@INTERVAL
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def history(view: str, interval: str, format: str) -> None:
    """List every generation of INTERVAL (its start, UTC): what became of it, who built it and why."""
    from seamline.lake.history import past
    from seamline.lake.snapshot import manifest_of
    from seamline.lake.versions import named
    from seamline.serve.history import spoken, table
    from seamline.serve.query import rows_written

    name, _, view_name = view.partition(".")
    pipeline, layout = opened(name)
    asked, found = interval_of(pipeline, interval), named(pipeline, layout, view_name)
    manifest = manifest_of(layout)
    known = past(layout, manifest, found.name, asked)
    if format == "json":
        rows_written(table(known), "json", sys.stdout)
    else:
        click.echo("\n".join(spoken(found.qualified, asked, manifest, known)))


@click.command()
@VIEW
@INTERVAL
@click.option("--to", default="", help="A generation, or how its id begins; else the one published before.")
@click.option("--reason", required=True, help="Kept in the manifest.")
@click.option("--despite-certificate", is_flag=True, help="Serve it though it is not certified.")
@click.option("--release", is_flag=True, help="Let dirty runs build the interval again; changes no number.")
def rollback(
    view: str, interval: str, to: str, reason: str, despite_certificate: bool, release: bool
) -> None:
    """Serve an earlier generation of INTERVAL, which no dirty run builds until it is released."""
    if release and (to or despite_certificate):
        raise click.UsageError("--release changes no number: leave --to and --despite-certificate out.")
    from seamline.lake.history import released, rolled_back
    from seamline.plan.publish import Decision

    name, _, view_name = view.partition(".")
    pipeline, layout = opened(name)
    asked = interval_of(pipeline, interval)
    if release:
        released(pipeline, layout, view_name, asked, actor=actor(), reason=reason)
        click.echo(f"{view} {asked.id} is released: the next dirty run builds it if anything came since.")
        return
    decision = Decision(actor(), reason, rollback=True, despite=despite_certificate)
    done = rolled_back(pipeline, layout, view_name, asked, to=to, decision=decision)
    assert done.how is How.ROLLBACK
    click.echo(
        f"{view} {asked.id} is served from generation {done.generation}, cut {done.epoch}.\n"
        f"It is held: no dirty run builds it. Let them: seamline rollback {view} {interval} --release "
        f"--reason ...; or build it: seamline run {name} --from ... --to ..."
    )


COMMANDS = (history, rollback)
