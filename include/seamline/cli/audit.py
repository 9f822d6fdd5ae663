"""Commands that say how far numbers can be trusted: audit, counts, comparisons, accuracy."""

from __future__ import annotations

import json
from datetime import timedelta

import click

from seamline.cli.context import current_actor, interval_of, open_pipeline, parse_range
from seamline.model.errors import AuditFailed


@click.command()
@click.argument("pipeline")
@click.option("--from", "start", help="Audit only the intervals from this one on, UTC.")
@click.option("--to", "end", help="End of the intervals, UTC (exclusive). [default: all that was ever read]")
@click.option("--sinks", is_flag=True, help="Also read back what targets of sinks hold, all of it.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def audit(pipeline: str, start: str | None, end: str | None, sinks: bool, format: str) -> int:
    """Compare what Kafka has, what was read, what the log contains and what each view makes of it.

    Of sinks it says what `seamline sinks audit` has found last; with --sinks it does that now.

    Exit code 39 if anything is wrong. Every audit is recorded.
    """
    from seamline.lake.tables.audits_table import Audits
    from seamline.plan.wording.audit_text import format_audit, serialize_audit
    from seamline.supervisor.auditing import audit as made

    compiled, layout = open_pipeline(pipeline)
    found = made(compiled, layout, span=parse_range(start, end), actor=current_actor(), sinks=sinks)
    Audits.ensure(layout).append(found)
    click.echo(json.dumps(serialize_audit(found)) if format == "json" else "\n".join(format_audit(found)))
    return 0 if found.passed else AuditFailed.exit_code


@click.command()
@click.argument("pipeline")
@click.option("--from", "start", help="First interval, UTC. [default: the last seven intervals]")
@click.option("--to", "end", help="End of the intervals, UTC (exclusive).")
@click.option(
    "--take/--no-take", default=True, show_default=True, help="First take new statements from Kafka."
)
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def counts(pipeline: str, start: str | None, end: str | None, take: bool, format: str) -> int:
    """Compare what was read with what producers say that they have sent, and name each gap.

    Exit code 1 if a closed interval has one. Certificates that say something else are quoted.
    """
    from seamline.plan.wording.counts_text import format_counted_interval, serialize_counted_interval
    from seamline.serve.producer_counts import list_bad_lines, list_counted_intervals, require_counting
    from seamline.supervisor.counts.taking import describe_taking

    compiled, layout = open_pipeline(pipeline)
    require_counting(compiled)
    span = parse_range(start, end)
    for line in describe_taking(compiled, layout) if take else ():
        click.echo(line, err=True)
    found = list_counted_intervals(compiled, layout, span)
    if format == "json":
        told = (
            serialize_counted_interval(
                each.interval, each.counts, each.certified, each.run, closed=each.closed
            )
            for each in found
        )
        click.echo(json.dumps(list(told)))
    else:
        for each in found:
            said = each.certified if each.changed else None
            lines = format_counted_interval(
                compiled.name, each.interval, each.counts, said, each.run, closed=each.closed
            )
            click.echo("\n".join(lines))
        if not found:
            click.echo(f"{pipeline}: nothing was read or stated of these intervals.")
    for line in list_bad_lines(compiled, layout):
        click.echo(line, err=True)
    return 1 if any(each.alarming for each in found) else 0


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option("--interval", help="The start of one interval. [default: all intervals]")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Number of newest rows to show.",
)
def comparisons(view: str, interval: str | None, limit: int) -> int:
    """Show what each generation changed in earlier answers, and why; exit code 1 for an alarm."""
    from seamline.lake.tables.comparisons_table import comparisons_of
    from seamline.lake.tables.view_versions import find_served_version, find_view
    from seamline.plan.batch.attribution import format_comparison

    pipeline, _, name = view.partition(".")
    compiled, layout = open_pipeline(pipeline)
    _, version = find_served_version(compiled, layout, find_view(compiled, layout, name))
    wanted = interval_of(compiled, interval).id if interval else ""
    found = comparisons_of(layout, version.id, wanted)[-limit:]
    if not found:
        click.echo(f"{version.qualified}: nothing was compared yet.")
    for each in found:
        click.echo("\n".join(format_comparison(each)))
    return 1 if any(each.alarm for each in found) else 0


@click.command()
@click.argument("view", metavar="PIPELINE.VIEW")
@click.option("--from", "start", help="First instant, UTC. [default: the last seven intervals with rows]")
@click.option("--to", "end", help="End of the span, UTC (exclusive).")
def accuracy(view: str, start: str | None, end: str | None) -> None:
    """Show how far early answers were from the final ones, by age, over all keys and panes."""
    from seamline.lake.audit.answer_accuracy import last_intervals
    from seamline.lake.audit.answer_accuracy import measure_answer_accuracy as made
    from seamline.lake.tables.view_versions import find_served_version, find_view

    pipeline, _, name = view.partition(".")
    compiled, layout = open_pipeline(pipeline)
    owner, version = find_served_version(compiled, layout, find_view(compiled, layout, name))
    looked_at = parse_range(start, end) or last_intervals(owner, layout)
    found = made(owner, version, layout, looked_at) if looked_at else []
    if not found:
        click.echo(f"{version.qualified}: nothing to compare.")
        return
    click.echo(f"{version.qualified}, {looked_at}: {found[0].places} keys and panes")
    for each in found:
        said = (
            "no number" if each.typical is None else f"typically {each.typical:+.2%}, most {each.most:+.2%}"
        )
        click.echo(
            f"  {each.measure:20} {age_of(each.age):>8} after: {each.there:6.1%} there, {said} until final"
        )


def age_of(age: timedelta) -> str:
    """Write an age."""
    hours, minutes = divmod(int(age.total_seconds()) // 60, 60)
    return f"{hours} h" if hours else f"{minutes} min"


COMMANDS = (audit, counts, comparisons, accuracy)
