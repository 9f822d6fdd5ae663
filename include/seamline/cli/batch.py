"""Commands about what is built, and what of: run, backfill, restate, ask, flip, retire, upkeep."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.building import plan_and_build
from seamline.cli.context import current_actor, open_pipeline, parse_range
from seamline.model.errors import BackfillFailed, BadRange, NotFound
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment
from seamline.plan.wording.plan_text import format_plan

if TYPE_CHECKING:
    from seamline.model.compile.asks.compiled_ask import CompiledAsk
    from seamline.model.compile.compiled_pipeline import CompiledPipeline


@click.command()
@click.argument("pipeline")
@click.option("--from", "start", help="First interval, UTC.")
@click.option("--to", "end", help="End of the range, UTC (exclusive).")
@click.option(
    "--dirty", is_flag=True, help="Build the dirty intervals: those with rows newer than their cut."
)
@click.option("--reason", default="", help="Reason, recorded with the generations.")
@click.option("--approve", is_flag=True, help="Run a plan that needs approval (approve_above).")
def run(pipeline: str, start: str | None, end: str | None, dirty: bool, reason: str, approve: bool) -> None:
    """Plan, build, certify and publish on this machine, without Airflow."""
    asked = parse_range(start, end)
    if asked is None and not dirty:
        raise BadRange("There is nothing to run.", hint="pass --from and --to, or --dirty.")
    compiled, layout = open_pipeline(pipeline)
    if asked is not None:
        compiled.grid.within_life(asked, now=datetime.now(UTC))
    plan_and_build(compiled, layout, asked=asked, dirty=dirty, reason=reason, approve=approve)


@click.command()
@click.argument("pipeline")
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option("--reason", default="backfill", show_default=True)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it is done.")
def backfill(pipeline: str, start: str, end: str, reason: str, wait: bool) -> None:
    """Rebuild the intervals of [FROM, TO) through Airflow."""
    from seamline.lake.publish.planning import plan_run
    from seamline.orchestration.airflow_api import AirflowApi

    compiled, layout = open_pipeline(pipeline)
    asked = Interval(parse_moment(start), parse_moment(end))
    compiled.grid.within_life(asked, now=datetime.now(UTC))
    click.echo("\n".join(format_plan(plan_run(compiled, layout, asked=asked, dirty=False))))
    done = AirflowApi.from_env().backfill(
        compiled.name,
        asked,
        compiled.grid,
        reason=reason,
        wait=wait,
        say=click.echo,
        on_progress=lambda state: click.echo(state.line()),
    )
    if done.failed:
        raise BackfillFailed(
            f"{done.failed} of {done.total} runs failed; their intervals are served as before.",
            hint="see the log of each run on its page in Airflow.",
        )


@click.command()
@click.argument("pipeline")
@click.argument("lookup")
@click.option("--from", "start", required=True, help="First interval, UTC.")
@click.option("--to", "end", required=True, help="End of the range, UTC (exclusive).")
@click.option("--reason", required=True, help="Reason, recorded in the control log.")
@click.option("--version", default="", help="A version of the table. [default: the table as it is now]")
def restate(pipeline: str, lookup: str, start: str, end: str, reason: str, version: str) -> None:
    """Rebuild what was read of [FROM, TO) with a corrected look-up; the next dirty run does it.

    Views of joins answer as before until that run is published.
    """
    from seamline.lake.publish import lookup_restating

    compiled, layout = open_pipeline(pipeline)
    asked = Interval(parse_moment(start), parse_moment(end))
    made = lookup_restating.restate_lookup(
        compiled,
        layout,
        lookup,
        asked,
        version=version,
        actor=current_actor(),
        reason=reason,
        now=datetime.now(UTC),
    )
    click.echo(f"restated: {made}")
    click.echo(f"Rows of later epochs keep what they found. Build it: seamline run {compiled.name} --dirty")
    still = [view.name for view in compiled.views if view.derived and lookup in view.derived.lookups]
    if still:
        click.echo(
            f"{', '.join(still)}: made of such rows, and no answer moves on until that build is published."
        )


@click.command()
@click.argument("pipeline")
def upkeep(pipeline: str) -> None:
    """Compact and clean the tables of a pipeline, and warn of what Kafka may delete before it was read."""
    from seamline.supervisor.requested_upkeep import run_upkeep as keep_up

    click.echo(keep_up(*open_pipeline(pipeline)))


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option(
    "--to", default="", help="The version's fingerprint or a prefix of it. [default: that of the definition]"
)
def flip(view: str, to: str) -> None:
    """Serve another version of a view, once it is built; the one it replaces stays live to flip back to."""
    from seamline.lake.publish.flipping import flip_view

    name, _, view_name = view.partition(".")
    statements = flip_view(*open_pipeline(name), view_name, to=to)
    for statement in statements:
        click.echo(f"{view} is served as version {statement.view.partition('/')[2]} {statement.reason}.")
    if not statements:
        click.echo(f"{view} is served as that version already; nothing was changed.")


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.argument("version", metavar="FINGERPRINT")
@click.option("--reason", required=True, help="Reason, recorded in the manifest.")
def retire(view: str, version: str, reason: str) -> None:
    """Stop feeding a version that is neither served nor declared; its tables stay."""
    from seamline.lake.publish.flipping import retire_version

    name, _, view_name = view.partition(".")
    done = retire_version(*open_pipeline(name), view_name, version, reason=f"{current_actor()}: {reason}")
    running = "the stream drops it at its next start" if done else "it was before; nothing was changed"
    click.echo(f"{view} version {version} is retired: {running}.")


@click.command()
@click.argument("pipeline")
@click.argument("name", metavar="QUESTION")
@click.option(
    "--from", "start", help="Start of the range, UTC: a border of intervals. [default: the pipeline's start]"
)
@click.option(
    "--to", "end", help="End of the range, UTC (exclusive). [default: the end of the present interval]"
)
@click.option("--only-errors", is_flag=True, help="Only rows whose error is recorded.")
@click.option("--reason", required=True, help="Reason, recorded in the control log.")
def ask(pipeline: str, name: str, start: str | None, end: str | None, only_errors: bool, reason: str) -> None:
    """Ask again about rows without an answer: those that failed, and those that nobody has asked about.

    The stream's own process asks, once it has read all answers that were written before. A row that has an answer keeps
    it: to ask about all of them again, give the question another version= in the definition.
    """
    from seamline.lake.tables.control_table import ControlTable
    from seamline.lake.tables.decided import find_question_births
    from seamline.model.protocol.control import AskDecision

    compiled, layout = open_pipeline(pipeline)
    asked, now = find_ask(compiled, name), datetime.now(UTC)
    grid = compiled.grid
    first, last = (format_utc_instant(at) for at in (grid.start, grid.of(now).end))
    span = Interval(parse_moment(start or first), parse_moment(end or last))
    grid.within_life(span, now=now)
    if asked.id not in find_question_births(layout):
        raise NotFound(
            f"The stream of {compiled.name} does not know the question {name!r} as it is declared now.",
            hint=f"`seamline stream start {compiled.name}` (`seamline stream restart {compiled.name}` if it runs), "
            "then ask again.",
        )
    decision = AskDecision(asked.name, span, only_errors, current_actor(), reason, now, asked.id)
    ControlTable.ensure(layout).ask_again(decision)
    click.echo(f"{compiled.name}: recorded; while it runs, the stream asks again about {decision}")


def find_ask(pipeline: CompiledPipeline, name: str) -> CompiledAsk:
    """Find a question by its name; NotFound."""
    for each in pipeline.asks:
        if each.name == name:
            return each
    if not pipeline.asks:
        raise NotFound(
            f"{pipeline.name} asks no other system.",
            hint="only a pipeline with derive=[Ask(...)] has questions.",
        )
    known = ", ".join(each.name for each in pipeline.asks)
    raise NotFound(f"{pipeline.name} has no question {name!r}.", hint=f"its questions: {known}.")


COMMANDS = (run, backfill, restate, ask, flip, retire, upkeep)
