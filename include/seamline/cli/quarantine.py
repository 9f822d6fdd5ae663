"""Commands about refused records: show them, and reprocess them after the definition was fixed."""

from __future__ import annotations

import click

from seamline.cli.building import plan_and_build
from seamline.cli.context import open_pipeline


@click.group()
def quarantine() -> None:
    """List or replay refused records."""


@quarantine.command("list")
@click.argument("pipeline")
@click.option(
    "--samples", type=click.IntRange(min=0), default=2, show_default=True, help="Records per reason."
)
def listed(pipeline: str, samples: int) -> None:
    """Show the refused records by reason, with samples."""
    from seamline.serve.refused_records import format_quarantine

    click.echo("\n".join(format_quarantine(*open_pipeline(pipeline), samples=samples)))


@quarantine.command()
@click.argument("pipeline")
@click.option(
    "--reason", default="quarantine replay", show_default=True, help="Reason, recorded with the generations."
)
def replay(pipeline: str, reason: str) -> None:
    """Reprocess all earlier records with the fixed definition, and build all that is dirty; raw rows never change.

    It is what `seamline run PIPELINE --dirty` does, up to max_dirty intervals at a time, after the definition has
    changed what a record means.
    """
    plan_and_build(*open_pipeline(pipeline), asked=None, dirty=True, reason=reason, bounded=False)


COMMANDS = (quarantine,)
