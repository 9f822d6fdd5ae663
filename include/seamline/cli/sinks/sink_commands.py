"""Commands about sinks: list them, run them without a stream, write one anew, and let go of one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from seamline.cli.context import open_pipeline
from seamline.model.errors import BadRange, NotFound

if TYPE_CHECKING:
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.model.definition.sinks.sink_base import Sink


@click.group()
def sinks() -> None:
    """List, run, resend or drop what sends a view's answer to other systems."""


@sinks.command("list")
@click.argument("pipeline")
def show_sinks(pipeline: str) -> None:
    """Show each sink: where it writes to, which version of the serving table is there, and how far behind that is."""
    from seamline.sinks.sink_list import format_sinks

    click.echo("\n".join(format_sinks(*open_pipeline(pipeline))))


@sinks.command()
@click.argument("pipeline")
@click.option("--once", is_flag=True, help="End as soon as each target shows what is served now.")
def run(pipeline: str, once: bool) -> None:
    """Send what is served until stopped, where no stream runs whose supervisor does so.

    It holds the lease of the stream meanwhile. With --once the error of a sink that has failed is this command's.
    """
    import threading

    from seamline.runtime.stop_signals import set_when_asked
    from seamline.sinks.sinks_process import own_lease, run_sinks

    compiled, layout = open_pipeline(pipeline)
    require_sinks(compiled)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("seamline.sinks").setLevel(logging.INFO)
    stop = threading.Event()
    set_when_asked(stop)
    with own_lease(layout) as holds:
        code = run_sinks(compiled, layout, stop, holds, once=once)
    if code:
        raise SystemExit(code)


@sinks.command()
@click.argument("pipeline")
@click.argument("sink")
def resend(pipeline: str, sink: str) -> None:
    """Delete all that a sink's target holds; whoever runs the sink then writes everything anew.

    For a topic that means a tombstone for each record that is there. A process that runs goes on by itself.
    """
    from seamline.sinks.sink_list import clear_target

    compiled, layout = open_pipeline(pipeline)
    clear_target(compiled, layout, find_sink(compiled, sink))
    click.echo(
        f"{sink}: cleared; it is written anew by the stream's supervisor, or by `seamline sinks run {pipeline}`"
    )


@sinks.command()
@click.argument("pipeline")
@click.argument("sink")
def drop(pipeline: str, sink: str) -> None:
    """Let go of a sink that is no longer in the definition: upkeep need not keep anything for it.

    What its target holds stays there.
    """
    from seamline.lake.tables.sinks.recorded_positions import forget_copy, list_copied_sinks

    compiled, layout = open_pipeline(pipeline)
    if any(each.id == sink for each in compiled.definition.sinks):
        raise BadRange(
            f"Sink {sink!r} is in the definition of {pipeline}.",
            hint="take it out of sinks=[...] first; the stream's supervisor sees that.",
        )
    if sink not in list_copied_sinks(layout):
        known = ", ".join(list_copied_sinks(layout)) or "none"
        raise NotFound(f"{pipeline} knows of no sink {sink!r}.", hint=f"there are {known}.")
    forget_copy(layout, sink)
    click.echo(f"{sink}: dropped")


def require_sinks(compiled: CompiledPipeline) -> None:
    """Raise NotFound for a pipeline without sinks."""
    if not compiled.definition.sinks:
        raise NotFound(f"{compiled.name} has no sinks.", hint="declare one: docs/sinks.md.")


def find_sink(compiled: CompiledPipeline, name: str) -> Sink:
    """Find a sink by its name; NotFound with the names that there are."""
    require_sinks(compiled)
    for each in compiled.definition.sinks:
        if each.id == name:
            return each
    names = ", ".join(each.id for each in compiled.definition.sinks)
    raise NotFound(f"{compiled.name} has no sink {name!r}.", hint=f"it has {names}.")


COMMANDS = (sinks,)
