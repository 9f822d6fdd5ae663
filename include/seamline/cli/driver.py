"""Commands about the resident driver that builds share: driver start, stop, status."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click

from seamline.cli.context import current_actor
from seamline.model.errors import SetupError


@click.group()
def driver() -> None:
    """Manage a resident Spark (Spark Connect), so that small builds need not start one."""


@driver.command()
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def start(reason: str) -> None:
    """Start the resident Spark, with its supervisor on this machine, and print how to use it."""
    from seamline.lake.tables.control_table import ControlTable, Desired
    from seamline.supervisor import resident
    from seamline.supervisor.outside import start_detached

    resident.make_token()
    control = ControlTable.ensure(resident.resident_layout())
    control.want(Desired.RUNNING, actor=current_actor(), reason=reason, now=datetime.now(UTC))
    if control.live_lease():
        click.echo("It is up.")
    else:
        click.echo(f"Started supervisor {start_detached(resident.NAME, {})}.")
    connection = json.dumps(
        {"conn_type": "spark_connect", "host": "localhost", "port": resident.read_resident_port()}
    )
    click.echo(f"Builds use it once Airflow's connection spark_default is {connection}")
    click.echo("The DAG seamline__reconcile starts it again after a reboot.")


@driver.command()
@click.option("--reason", default="", help="Reason, recorded in the control log.")
def stop(reason: str) -> None:
    """Stop the resident Spark and wait until it has stopped; builds that it was running fail and can be rerun."""
    from seamline.supervisor import resident
    from seamline.supervisor.outside import stop_stream as stop_now

    stop_now(resident.resident_layout(), actor=current_actor(), reason=reason)
    click.echo("It is stopped.")


@driver.command()
def status() -> None:
    """Show the desired state, the actual state and the last error; exit code 6 if it should run and does not."""
    from seamline.lake.tables.control_table import Desired
    from seamline.supervisor import resident
    from seamline.supervisor.outside import read_stream_status as status_of

    found = status_of(resident.NAME)
    beat = found.heartbeat
    click.echo(
        f"desired: {found.desired} ({found.actor or 'nobody'}{': ' * bool(found.reason)}{found.reason})"
    )
    click.echo(f"actual:  {beat.state if beat and found.running else 'down'}")
    if beat and beat.last_error:
        click.echo(f"last error, {beat.strikes} in a row: {beat.last_error}")
    if found.desired is Desired.RUNNING and not found.running:
        raise SetupError(
            "The resident driver should be running, but it is down.",
            hint="run `seamline driver start`, or check whether the DAG seamline__reconcile is paused.",
        )


COMMANDS = (driver,)
