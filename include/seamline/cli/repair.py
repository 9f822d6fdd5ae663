"""The command for tables that cannot be of one history: repair."""

from __future__ import annotations

import click

from seamline.cli.context import current_actor, open_pipeline
from seamline.model.errors import OutOfStep


@click.command()
@click.argument("pipeline")
@click.option(
    "--accept",
    is_flag=True,
    help="Accept what the master contains: withdraw what is served beyond it, and read that again from Kafka.",
)
@click.option("--reason", default="", help="Reason, recorded in the manifest; required with --accept.")
def repair(pipeline: str, accept: bool, reason: str) -> int:
    """Check whether the tables fit each other, after one was restored alone; exit code 44 if they do not.

    What a power cut has left every start repairs by itself. With --accept a person lets go of what the master has
    lost; the stream must not run.
    """
    if accept and not reason:
        raise click.UsageError("--accept needs --reason.")
    from seamline.lake.maintain.repair import find_contradictions

    compiled, layout = open_pipeline(pipeline)
    if accept:
        from seamline.plan.maintain.repair_steps import Acceptance
        from seamline.supervisor.repairing import repair_pipeline

        click.echo("\n".join(repair_pipeline(compiled, layout, Acceptance(current_actor(), reason))))
        return 0
    found = list(find_contradictions(layout, [view.id for view in compiled.views]))
    for why in found:
        click.echo(why)
    if not found:
        click.echo(
            f"{pipeline}: the tables share one history; the next start repairs what a power loss has left."
        )
        return 0
    click.echo(
        "Return the table that was restored alone to its previous state; or, if that is lost, let the master stand for "
        f"what there is: seamline repair {pipeline} --accept --reason ..."
    )
    return OutOfStep.exit_code


COMMANDS = (repair,)
