"""Command that shows everything at work: demo."""

from __future__ import annotations

import os
from typing import Any

import click

from seamline.cli.setup import list_groups, setup
from seamline.local.demo.options import PARAMETERS, Options


@click.command(params=[*PARAMETERS])
@click.pass_context
def demo(context: click.Context, /, **options: Any) -> int:
    """Run a year of flights through Kafka, Spark, Delta and Airflow on this machine, and check every number.

    It needs the extra `demo`, Java 17 or later, and the jars of `seamline setup --broker`, which it fetches if they
    lack. All that it writes is in .seamline of this folder. It stays up until Ctrl-C.
    """
    from seamline.local.demo.__main__ import run_demo
    from seamline.local.demo.scene import require_extra

    require_extra()
    if list_lacking_groups():
        click.echo("The jars of Spark and of Kafka's broker are not complete: fetching them first.")
        context.invoke(setup, jars=None, source=None, broker=True, store=None, archive=True)
    return run_demo(Options(**options))


def list_lacking_groups() -> list[str]:
    """List the groups of jars that are not complete."""
    from seamline.local.ivy import list_missing_parts
    from seamline.runtime.java import jar_folder, list_java_parts

    wanted = list_groups(os.environ, broker=True, store=None)
    return [name for name in wanted if list_missing_parts(list_java_parts(name), jar_folder() / name)]


COMMANDS = (demo,)
