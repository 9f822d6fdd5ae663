"""Commands that write what others read views by."""

from __future__ import annotations

from pathlib import Path

import click

from seamline.cli.context import load_configured_catalog, open_pipeline
from seamline.cli.look import write_pieces
from seamline.model.errors import BadRange

SIGN = "# Written by `seamline export dbt`; the next time over it. Edit the definition, not this file."


@click.group()
def export() -> None:
    """Write what other tools read views by."""


@export.command("dbt")
@click.argument("pipelines", metavar="[PIPELINE]...", nargs=-1)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for sources.yml and profiles.example.yml. [default: print the sources]",
)
@click.option(
    "--severity",
    type=click.Choice(["warn", "error"]),
    default="warn",
    show_default=True,
    help="Of the test that finds windows which should be certified and are not.",
)
def dbt(pipelines: tuple[str, ...], output: Path | None, severity: str) -> None:
    """Write sources of dbt over serving tables, with columns, freshness and tests; of all pipelines unless named."""
    from seamline.serve.dbt.sources_file import PROFILE, make_sources
    from seamline.serve.dbt.yaml_text import format_yaml

    names = pipelines or sorted(load_configured_catalog().pipelines)
    sources = format_yaml(make_sources(map(open_pipeline, names), severity))
    if output is None:
        click.echo(sources, nl=False)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.FileError(str(output), hint=error.strerror) from error
    for name, text in (("sources.yml", sources), ("profiles.example.yml", format_yaml(PROFILE))):
        place = output / name
        require_own(place)
        write_pieces([f"{SIGN}\n{text}".encode()], place)
        click.echo(place)


def require_own(place: Path) -> None:
    """Refuse to write over a file of somebody else's: BadRange."""
    if place.exists() and not place.read_text().startswith(SIGN):
        raise BadRange(f"{place} was not written by this command.", hint="move it, or name another --output.")


COMMANDS = (export,)
