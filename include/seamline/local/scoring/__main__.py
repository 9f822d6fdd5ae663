"""``python -m seamline.local.scoring``: the scoring service, until it is interrupted."""

from __future__ import annotations

import signal
import sys
from dataclasses import fields
from threading import Event
from typing import Any

import click

from seamline.local.scoring.manners import Manners
from seamline.local.scoring.service import HOST, ScoringService
from seamline.model.errors import BadRange, SetupError

PORT = 8089
SAYS = {
    "seed": "Seed of all that is drawn.",
    "latency": "Seconds that a call takes.",
    "slow": "Share of requests whose calls take --slow-for.",
    "slow_for": "Seconds that a slow call takes.",
    "wrong": "Share of requests that are answered with a text for a number.",
    "refuses": "Share of requests that are refused.",
    "fails": "Share of requests whose first call fails.",
    "away": "Give no answer until POST /manners says otherwise.",
}


def list_options() -> list[click.Parameter]:
    """List the options: where to listen, and the settings of ``Manners``."""
    settings = [
        click.Option(
            [f"--{each.name.replace('_', '-')}"],
            type=type(each.default),
            is_flag=each.default is False,
            default=each.default,
            show_default=each.default is not False,
            help=SAYS[each.name],
        )
        for each in fields(Manners)
    ]
    return [
        click.Option(["--host"], default=HOST, show_default=True, help="Address to listen on."),
        click.Option(
            ["--port"],
            type=click.IntRange(0, 65_535),
            default=PORT,
            show_default=True,
            help="Port to listen on; 0 for a free one.",
        ),
        *settings,
    ]


def serve(host: str, port: int, **settings: Any) -> None:
    """Say how risky payments are, as the example scored_payments asks, until interrupted."""
    try:
        manners = Manners(**settings)
    except BadRange as error:
        raise click.UsageError(str(error)) from None
    over = Event()
    try:
        with ScoringService(manners, host=host, port=port) as service:
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, lambda *_: over.set())
            click.echo(f"scoring on {service.url}")
            over.wait()
    except OSError as error:
        click.echo(f"Nothing can listen on {host}:{port}: {error}.", err=True)
        sys.exit(SetupError.exit_code)


if __name__ == "__main__":
    name = "python -m seamline.local.scoring"
    click.Command(name, params=list_options(), callback=serve, help=serve.__doc__)(prog_name=name)
