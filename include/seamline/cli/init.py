"""Command that begins a project: init."""

from __future__ import annotations

from pathlib import Path

import click

from seamline.model.errors import SetupError


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--pipeline", default="orders", show_default=True, help="Name of the example pipeline.")
def init(folder: Path, pipeline: str) -> None:
    """Write a new project into FOLDER: an example pipeline with its test, DAGs, containers, and commands.

    Nothing is overwritten: a folder that has one of its files is refused.
    """
    import seamline
    from seamline.local.project.project_files import plan_project, write_project

    files = plan_project(folder, pipeline, seamline.__version__)
    try:
        write_project(folder, files)
    except OSError as problem:
        raise SetupError(
            f"The project cannot be written: {problem}.", hint="name a folder that this user may write to."
        ) from problem
    for file in files:
        click.echo(f"  {folder / file.path}")
    click.echo(f"{len(files)} files are written; {folder / 'README.md'} has the commands.")


COMMANDS = (init,)
