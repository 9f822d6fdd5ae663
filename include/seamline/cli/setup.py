"""Command that completes an installation: setup."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from seamline.model.errors import SetupError

GROUPS = ("spark", "kafka")


@click.command()
@click.option(
    "--jars",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to fill; SEAMLINE_JARS, or .seamline/jars here, if it is not given.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder, with its subfolders, that has the jars: nothing is downloaded.",
)
@click.option("--broker", is_flag=True, help="Also fetch the Kafka broker that demos and tests run.")
@click.option(
    "--archive/--no-archive",
    default=True,
    show_default=True,
    help="Write an archive of the classes that Spark loads: drivers start in half the time.",
)
def setup(jars: Path | None, source: Path | None, broker: bool, archive: bool) -> None:
    """Fetch the Java parts that Spark needs, each by its checksum; safe to repeat, and complete parts are kept."""
    from seamline.runtime.java import CLASSES, jar_folder, java_home

    if not find_spec("pyspark"):
        raise SetupError("Spark is not installed.", hint="pip install 'seamline[spark]', then run it again.")
    folder = (jars or jar_folder()).absolute()
    for group in GROUPS if broker else GROUPS[:1]:
        count = fetch_group(group, folder / group, source)
        click.echo(f"{group}: {count} jars fetched, all of them complete in {folder / group}")
    if archive and not (folder / CLASSES).exists():
        done = subprocess.run(
            [sys.executable, "-P", "-m", "seamline.spark.tasks.class_data", str(folder / CLASSES)],
            env=class_environment(folder, java_home()),
            capture_output=True,
            text=True,
            check=False,
        )
        said = (
            f"classes are archived in {folder / CLASSES}"
            if done.returncode == 0
            else "no classes are archived"
        )
        click.echo(said)
    if jars:
        click.echo(f"Set SEAMLINE_JARS={folder} where Spark's drivers start.")


def class_environment(jars: Path, java: Path) -> dict[str, str]:
    """Return the environment in which classes are archived: these jars, this Java, and tables that are thrown away."""
    return {
        **os.environ,
        "SEAMLINE_JARS": str(jars),
        "JAVA_HOME": str(java),
        "SEAMLINE_HOME": tempfile.gettempdir(),
        "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -XX:TieredStopAtLevel=1".strip(),
    }


def fetch_group(group: str, folder: Path, source: Path | None) -> int:
    """Bring the parts of a group that are missing, or other than the pinned ones, into a folder; return their number.

    Raises SetupError for a part that ``source``, or what was downloaded, does not have with its checksum.
    """
    from seamline.local import ivy
    from seamline.runtime.java import java_home, list_java_parts

    missing = ivy.list_missing_parts(list_java_parts(group), folder)
    if missing and source is not None:
        with tempfile.TemporaryDirectory() as scratch:
            copy_parts([part.jar for part in missing], source, Path(scratch))
            ivy.move_verified_parts(missing, Path(scratch), folder)
    elif missing:
        spec = find_spec("pyspark")
        assert spec and spec.origin
        [shipped] = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
        java = [str(java_home() / "bin" / "java")]
        ivy.download_parts(missing, folder, java=java, ivy=shipped, run=run_ivy)
    return len(missing)


def copy_parts(names: Sequence[str], source: Path, folder: Path) -> None:
    """Copy files of these names, wherever below a folder they are; SetupError for those that are nowhere."""
    there = {path.name: path for path in source.rglob("*.jar")}
    if lacking := sorted({*names} - there.keys()):
        raise SetupError(
            f"{source} lacks {len(lacking)} of {len(names)} jars: {', '.join(lacking[:5])}"
            f"{' ...' if len(lacking) > 5 else ''}.",
            hint="copy the folder of jars of a machine on which seamline setup has run, of the same release.",
        )
    for name in names:
        shutil.copyfile(there[name], folder / name)


def run_ivy(command: list[str]) -> None:
    """Run Ivy; SetupError with its last words where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise SetupError(
            f"The Java parts could not be fetched: {said[-1] if said else f'exit code {done.returncode}'}",
            hint="connect this machine, set SEAMLINE_MAVEN_MIRROR to a mirror, or give --from a folder that has them.",
        )


COMMANDS = (setup,)
