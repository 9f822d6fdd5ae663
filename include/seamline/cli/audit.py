"""The command that compares Kafka, ledger, log and views: audit."""

from __future__ import annotations

import json

import click

from seamline.cli.context import actor, opened
from seamline.model.errors import AuditFailed


@click.command()
@click.argument("pipeline")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def audit(pipeline: str, format: str) -> int:
    """Compare what Kafka has, what was read, what the log holds and what each view makes of it.

    Exit code 39 where anything is wrong. Every audit is kept.
    """
    from seamline.lake.audits import Audits
    from seamline.plan.audited import facts, lines
    from seamline.supervisor.auditing import audit as made

    compiled, layout = opened(pipeline)
    found = made(compiled, layout, actor=actor())
    Audits.ensure(layout).append(found)
    click.echo(json.dumps(facts(found)) if format == "json" else "\n".join(lines(found)))
    return 0 if found.passed else AuditFailed.exit_code


COMMANDS = (audit,)
