"""The command that compares what targets of sinks hold with what is served."""

from __future__ import annotations

import json

import click

from seamline.cli.context import current_actor, open_pipeline
from seamline.cli.sinks.declared_sinks import find_sink, parse_starts, require_sinks
from seamline.model.errors import AuditFailed, BadRange


@click.command("audit")
@click.argument("pipeline")
@click.argument("sink", required=False)
@click.option("--from", "start", help="Compare windows that start from here on, UTC. [default: all]")
@click.option("--to", "end", help="End of their starts, UTC (exclusive).")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def audit_sinks(pipeline: str, sink: str | None, start: str | None, end: str | None, format: str) -> int:
    """Read back what a sink's target holds, or that of each sink, and compare it with what is served.

    Exit code 39 if a row is missing, too many, or another, or if one of several sinks cannot be audited. The sink goes
    on meanwhile. Every audit is recorded.
    """
    from seamline.lake.read.sinks.shown_rows import StartRange
    from seamline.model.definition.sinks.sink_base import Sink
    from seamline.sinks.audit.audit_words import format_sink_audit, serialize_sink_audit
    from seamline.sinks.audit.made_audits import describe_audit_failure, make_sink_audit

    compiled, layout = open_pipeline(pipeline)
    require_sinks(compiled)
    named = [find_sink(compiled, sink)] if sink else compiled.definition.sinks
    asked = [each for each in named if isinstance(each, Sink)]
    if not asked:
        raise BadRange(
            "Sinks of records are not audited.",
            hint="audits are of sinks that keep what a view serves.",
        )
    if others := [each.id for each in named if each not in asked]:
        click.echo(f"not audited: {', '.join(others)}", err=True)
    span = StartRange(*parse_starts(start, end))
    passed = True
    for each in asked:
        try:
            found = make_sink_audit(compiled, layout, each, actor=current_actor(), span=span)
        except Exception as error:
            if len(asked) == 1:
                raise
            click.echo(f"sink {each.id}: {describe_audit_failure(error)}", err=True)
            passed = False
            continue
        told = serialize_sink_audit(found)
        click.echo(json.dumps(told, default=str) if format == "json" else "\n".join(format_sink_audit(found)))
        passed = passed and found.passed
    return 0 if passed else AuditFailed.exit_code
