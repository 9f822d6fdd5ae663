"""The command that lets another system be asked again about rows without an answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor, open_pipeline
from seamline.model.errors import NotFound

if TYPE_CHECKING:
    from seamline.model.compile.asks.compiled_ask import CompiledAsk
    from seamline.model.compile.compiled_pipeline import CompiledPipeline


@click.command()
@click.argument("pipeline")
@click.argument("name")
@click.option("--from", "start", help="First event time of the rows, UTC. [default: the pipeline's first]")
@click.option(
    "--to",
    "end",
    help="End of their event times, UTC. [default: the end of the present interval]",
)
@click.option(
    "--only-errors", is_flag=True, help="Rows alone of which the topic says why there is no answer."
)
@click.option("--reason", required=True, help="Reason, recorded in the control log.")
def ask(pipeline: str, name: str, start: str | None, end: str | None, only_errors: bool, reason: str) -> None:
    """Ask again about rows without an answer: those that failed, and those that nobody has asked about.

    The stream's own process asks, once it has read all answers that were written before. A row that has an answer keeps
    it: to ask about all of them again, give the question another version= in the definition.
    """
    from seamline.lake.tables.control_table import ControlTable
    from seamline.model.protocol.ask_decision import AskDecision
    from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment

    compiled, layout = open_pipeline(pipeline)
    asked, now = find_ask(compiled, name), datetime.now(UTC)
    grid = compiled.grid
    first, last = (format_utc_instant(at) for at in (grid.start, grid.of(now).end))
    span = Interval(parse_moment(start or first), parse_moment(end or last))
    list(grid.within(span))
    decision = AskDecision(asked.name, span, only_errors, current_actor(), reason, now)
    ControlTable.ensure(layout).ask_again(decision)
    click.echo(f"{compiled.name}: the stream asks again about {decision}")


def find_ask(pipeline: CompiledPipeline, name: str) -> CompiledAsk:
    """Find a question by its name; NotFound."""
    for each in pipeline.asks:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in pipeline.asks) or "none"
    raise NotFound(
        f"{pipeline.name} asks no question {name!r}.", hint=f"its questions are {known}; see derive=."
    )


COMMANDS = (ask,)
