"""The command metrics: all streams as Prometheus reads them."""

from __future__ import annotations

import click


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
    from seamline.supervisor.stream_metrics import make_metrics_registry

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
