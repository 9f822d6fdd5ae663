"""The command line: `seamline --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from seamline.cli import (
    audit,
    batch,
    demo,
    doctor,
    driver,
    generations,
    holes,
    importing,
    init,
    kafka,
    look,
    migrate,
    produce,
    quarantine,
    repair,
    setup,
    stream,
    streams,
    upgrade,
)
from seamline.cli.answers import mcp, sql
from seamline.cli.clusters import failover
from seamline.cli.definitions import contract, export
from seamline.cli.planning import plan_command
from seamline.cli.sinks import sink_commands
from seamline.model.errors import SeamlineError
from seamline.runtime.storage_failures import explain_storage_failure


def print_version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Print the version and end; finding it takes a while, which no other command waits for."""
    if asked:
        from seamline.version import VERSION

        click.echo(f"seamline, version {VERSION}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Show the version.",
)
def seamline() -> None:
    """One definition, two layers, one certified answer.

    Definitions are found in SEAMLINE_PIPELINES, tables in SEAMLINE_WAREHOUSE, or where SEAMLINE_WAREHOUSE_ORDERS says
    for a pipeline orders. All times are UTC and all ranges half-open: the end is exclusive. Exit codes: 0 done, 2 wrong
    usage, 3 a definition is wrong, 4 not found, 5 an invalid range, 6 something is missing; docs/exit-codes.md lists
    all of them.
    """


for module in (
    init,
    demo,
    look,
    sql,
    mcp,
    contract,
    export,
    quarantine,
    stream,
    failover,
    streams,
    holes,
    importing,
    sink_commands,
    plan_command,
    batch,
    generations,
    audit,
    repair,
    upgrade,
    migrate,
    produce,
    kafka,
    driver,
    doctor,
    setup,
):
    for command in module.COMMANDS:
        seamline.add_command(command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; an error of ours becomes a message on stderr and its exit code."""
    try:
        code = seamline.main(args=argv, prog_name="seamline", standalone_mode=False)
    except SeamlineError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # The reader of a pipe has seen enough; Python would complain again when it closes stdout.
        sys.stderr.close()
        return 0
    except Exception as error:
        if (ours := explain_storage_failure(error)) is None:
            raise
        click.echo(f"Error: {ours}", err=True)
        return ours.exit_code
    return code if isinstance(code, int) else 0


def run() -> NoReturn:
    """Run the command line of this process, and end with its exit code."""
    from seamline.runtime.process_exit import exit_process

    exit_process(main())
