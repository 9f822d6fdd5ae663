"""Commands that watch streams: stream list, stream logs, metrics."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from seamline.cli.context import load_configured_catalog, load_configured_pipeline
from seamline.cli.stream import stream

if TYPE_CHECKING:
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.plan.stream.observation import Observation

RIGHT = ("epoch", "lag", "rows/s", "restarts", "oldest unread", "caught up in", "behind by")


@stream.command("list")
@click.argument("pipelines", metavar="[PIPELINE]...", nargs=-1)
@click.option("--format", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--no-broker", is_flag=True, help="Do not ask Kafka; show the lag of the driver's last heartbeat."
)
@click.option("--watch", type=click.FloatRange(min=0.5), metavar="SECONDS", help="Refresh until Ctrl-C.")
def list_(pipelines: tuple[str, ...], format: str, no_broker: bool, watch: float | None) -> None:
    """List streams with desired and actual state, position, lag and problems."""
    from seamline.supervisor.observe import observe_all

    wanted = find_streams(pipelines)
    while True:
        found = observe_all(wanted, broker=not no_broker)
        if watch and format == "table":
            click.clear()
        print_observations(found, format)
        sys.stdout.flush()
        if not watch:
            return
        time.sleep(watch)


def find_streams(names: Sequence[str]) -> dict[str, CompiledPipeline | None]:
    """Find streams by name, all of them by none; those whose definition is gone or broken too, else NotFound."""
    from seamline.supervisor.observe import streams_of

    defined = load_configured_catalog()
    known = streams_of(defined.pipelines)
    return {name: known[name] if name in known else defined.pipeline(name) for name in names or known}


def print_observations(found: Sequence[Observation], format: str) -> None:
    """Write observations, as a table with what must be said below it, or as a JSON object a line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from seamline.plan.wording.observation_text import (
        format_observation_notes,
        format_observation_row,
        serialize_observation,
    )

    if format == "json":
        for each in found:
            click.echo(json.dumps(serialize_observation(each)))
        return
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 200)
    table = Table(box=None, pad_edge=False)
    rows = [format_observation_row(each) for each in found]
    for name in rows[0] if rows else ():
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row.values()))
    console.print(table)
    for each in found:
        for line in format_observation_notes(each):
            click.echo(f"  {each.pipeline}: {line}")


@stream.command()
@click.argument("pipeline")
@click.option("--lines", "-n", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Follow the output until Ctrl-C.")
@click.option("--supervisor", is_flag=True, help="The supervisor's output, not the driver's.")
def logs(pipeline: str, lines: int, follow: bool, supervisor: bool) -> None:
    """Show the last lines of the driver's output, including rotated files."""
    from seamline.lake.storage.layout import home_folder
    from seamline.model.errors import NotFound
    from seamline.supervisor.stream_logs import follow_log, last_lines

    log = home_folder() / "streams" / pipeline / ("supervisor.log" if supervisor else "driver.log")
    found = last_lines(log, lines)
    if found is None:
        load_configured_pipeline(pipeline)
        raise NotFound(f"There is no {log}.", hint="the stream has never been started on this host.")
    for line in found:
        click.echo(line)
    for text in follow_log(log) if follow else ():
        click.echo(text, nl=False)


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; there is no login."
)
@click.option("--port", type=click.IntRange(0, 65535), default=9464, show_default=True)
@click.option("--once", is_flag=True, help="Print the metrics once and exit.")
@click.option(
    "--no-broker", is_flag=True, help="Do not ask Kafka; show the lag of the driver's last heartbeat."
)
def metrics(host: str, port: int, once: bool, no_broker: bool) -> None:
    """Serve the state of all streams at /metrics for Prometheus, until Ctrl-C."""
    from prometheus_client import generate_latest, start_http_server

    from seamline.model.errors import SetupError
    from seamline.supervisor.metrics.registry import make_metrics_registry

    made = make_metrics_registry(broker=not no_broker)
    if once:
        click.echo(generate_latest(made).decode(), nl=False)
        return
    try:
        server, thread = start_http_server(port, host, made)
    except OSError as error:
        raise SetupError(
            f"Cannot listen on {host}:{port}: {error}.", hint="choose another --port."
        ) from error
    click.echo(f"http://{host}:{server.server_port}/metrics")
    try:
        thread.join()
    finally:
        server.shutdown()
        server.server_close()


COMMANDS = (metrics,)
