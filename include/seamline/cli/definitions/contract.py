"""The command that writes a definition down for others: as a contract, and as JSON Schema."""

from __future__ import annotations

import click

from seamline.cli.context import load_configured_catalog


@click.command()
@click.argument("name", metavar="PIPELINE")
@click.option(
    "--form",
    type=click.Choice(["odcs", "json-schema"]),
    default="odcs",
    show_default=True,
    help="The Open Data Contract Standard, or JSON Schema.",
)
@click.option(
    "--write", is_flag=True, help="Write both beside the definition; check keeps to them from then on."
)
def contract(name: str, form: str, write: bool) -> int:
    """Print what a definition promises: records that it accepts, rows that its views have."""
    from seamline.model.compile.contracts.json_schema import make_json_schema
    from seamline.model.compile.contracts.kept_contracts import (
        format_document,
        list_broken_contracts,
        read_contract,
        renew_contract,
        write_contract,
    )

    pipeline = load_configured_catalog().pipeline(name)
    kept = read_contract(pipeline)
    made = renew_contract(pipeline, kept)
    if not write:
        click.echo(format_document(made if form == "odcs" else make_json_schema(pipeline)), nl=False)
        return 0
    for problem in list_broken_contracts(pipeline):
        click.echo(problem.message, err=True)
    for place in write_contract(pipeline, made):
        click.echo(f"{place}  version {made['version']}")
    return 0


COMMANDS = (contract,)
