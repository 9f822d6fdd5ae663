"""Commands about the speed layer: stream start and stop, supervise."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from seamline.cli.context import actor, opened


@click.group()
def stream() -> None:
    """Say what a stream should be doing; the reconcile DAG, or `seamline supervise`, makes it so."""


@stream.command()
@click.argument("pipeline")
@click.option("--reason", default="", help="Kept with the wish.")
def start(pipeline: str, reason: str) -> None:
    """Want the stream to run."""
    want(pipeline, "running", reason)


@stream.command()
@click.argument("pipeline")
@click.option("--reason", default="", help="Kept with the wish.")
def stop(pipeline: str, reason: str) -> None:
    """Want the stream to stop: it finishes its epoch, declares an edge and releases its lease."""
    want(pipeline, "stopped", reason)


def want(name: str, state: str, reason: str) -> None:
    """Write the desired state."""
    from seamline.lake.control import ControlTable, Desired

    pipeline, layout = opened(name)
    table = ControlTable.ensure(layout)
    table.want(Desired(state), actor=actor(), reason=reason, now=datetime.now(UTC))
    click.echo(f"{pipeline.name}: the stream should be {state}.")


@click.command()
@click.argument("pipeline")
def supervise(pipeline: str) -> int:
    """Run the stream's driver and keep it up, in the foreground, while it is wanted."""
    from seamline.supervisor.process import supervise as keep_up

    compiled, layout = opened(pipeline)
    return keep_up(compiled.name, layout)


COMMANDS = (stream, supervise)
