"""Command that shows everything at work: demo."""

from __future__ import annotations

import os
from typing import Any

import click

from seamline.cli.setup import list_groups, setup
from seamline.local.demo.options import PARAMETERS, Options
from seamline.runtime.java import is_in_bucket


@click.command(params=[*PARAMETERS])
@click.pass_context
def demo(context: click.Context, /, **options: Any) -> int:
    """Run a year of flights through Kafka, Spark, Delta and Airflow on this machine, and check every number.

    It needs the extra `demo`, Java 17 or later, and the jars of `seamline setup --broker`, which it fetches if they
    lack. All that it writes is in .seamline of this folder. It stays up until Ctrl-C.
    """
    from seamline.local.demo.__main__ import run_demo
    from seamline.local.demo.scene import Scene, require_extra

    require_extra()
    asked = Options(**options)
    Scene(asked).check_place()
    store = is_in_bucket(asked.warehouse)
    if list_lacking_groups(store=store):
        click.echo("The demo's jars are not complete: fetching them first.")
        context.invoke(setup, jars=None, source=None, broker=True, store=store, archive=True)
    return run_demo(asked)


def list_lacking_groups(*, store: bool) -> list[str]:
    """List the groups of jars that are not complete; those for a bucket count if its tables are to be in one."""
    from seamline.local.ivy import list_missing_parts
    from seamline.runtime.java import jar_folder, list_java_parts

    wanted = list_groups(os.environ, broker=True, store=store)
    return [name for name in wanted if list_missing_parts(list_java_parts(name), jar_folder() / name)]


COMMANDS = (demo,)
