"""Command that completes an installation: setup."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seamline.model.errors import SetupError
from seamline.runtime.java import is_in_bucket
from seamline.runtime.storage_failures import disk_full

if TYPE_CHECKING:
    from seamline.runtime.java import Part

LOG = "setup.log"


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
    help="Copy the jars from this folder or its subfolders instead of downloading them.",
)
@click.option("--broker", is_flag=True, help="Also fetch the Kafka broker that demos and tests run.")
@click.option(
    "--store/--no-store",
    default=None,
    help="Also fetch what Spark needs for a warehouse in an S3 bucket; by default, if a warehouse is in one.",
)
@click.option(
    "--archive/--no-archive",
    default=True,
    show_default=True,
    help="Write an archive of the classes that Spark loads: drivers start in half the time.",
)
def setup(jars: Path | None, source: Path | None, broker: bool, store: bool | None, archive: bool) -> None:
    """Fetch the Java parts that Spark needs, each by its checksum; safe to repeat, and complete parts are kept."""
    from seamline.runtime.java import jar_folder

    shipped = find_spark_jars()
    folder = (jars or jar_folder()).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for group in list_groups(os.environ, broker=broker, store=store):
            count = fetch_group(group, folder, source, shipped)
            click.echo(f"{group}: {count} jars fetched; all are complete in {folder / group}")
        if archive:
            click.echo(archive_classes(folder))
    except OSError as problem:
        if full := disk_full(problem):
            raise full from problem
        raise SetupError(
            f"{folder} cannot be filled: {problem.strerror or problem}.",
            hint="let this user write there, or name another folder by --jars.",
        ) from problem
    if folder != jar_folder():
        click.echo(f"Set SEAMLINE_JARS={folder} where Spark's drivers start.")


def list_groups(environ: Mapping[str, str], *, broker: bool, store: bool | None) -> list[str]:
    """List the groups of jars to fetch; those for a bucket are asked for, or a warehouse is in one."""
    if store is None:
        from seamline.lake.storage.layout import warehouse_settings

        store = any(map(is_in_bucket, warehouse_settings(environ).values()))
    return ["spark", *(["s3"] if store else []), *(["kafka"] if broker else [])]


def find_spark_jars() -> Path:
    """Find the folder of PySpark's own jars; SetupError where it is not installed, or its client alone is."""
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    if folder is None or not folder.is_dir():
        raise SetupError(
            "PySpark is not installed.", hint="pip install 'seamline[spark]', then run it again."
        )
    return folder


def fetch_group(group: str, jars: Path, source: Path | None, shipped: Path) -> int:
    """Bring the parts of a group that are missing, or other than the pinned ones, into its folder of ``jars``.

    They come from ``source``, or are downloaded by the Ivy among the ``shipped`` jars. Returns their number; raises
    SetupError for a part that does not come with its checksum.
    """
    from seamline.local import install, ivy
    from seamline.runtime.java import java_home, list_java_parts

    folder = jars / group
    missing = ivy.list_missing_parts(list_java_parts(group), folder)
    if missing and source is not None:
        # Beside its target: a file is moved only within one file system.
        with tempfile.TemporaryDirectory(dir=jars) as scratch:
            copy_parts(missing, source, Path(scratch))
            ivy.move_verified_parts(missing, Path(scratch), folder)
    elif missing:
        failure = f"the Java parts for {group} could not be fetched"
        run = partial(install.run_logged, jars / LOG, failure=failure)
        [own] = shipped.glob("ivy-*.jar")
        java = [str(java_home() / "bin" / "java")]
        ivy.download_parts(missing, folder, java=java, ivy=own, run=lambda command: run(command=command))
    return len(missing)


def copy_parts(parts: Sequence[Part], source: Path, folder: Path) -> None:
    """Copy parts, wherever below a folder they are; SetupError for those that are nowhere with the pinned bytes."""
    from seamline.local.ivy import hash_file

    there: dict[str, list[Path]] = {}
    for path in sorted(source.rglob("*.jar")):
        there.setdefault(path.name, []).append(path)
    if lacking := [part.jar for part in parts if part.jar not in there]:
        raise SetupError(
            f"{source} lacks {len(lacking)} of {len(parts)} jars: {list_some(lacking)}.",
            hint="copy the folder of jars from a machine where seamline setup of the same release has run.",
        )
    good = {part.jar: [path for path in there[part.jar] if hash_file(path) == part.sha256] for part in parts}
    if other := [str(there[name][0]) for name, paths in good.items() if not paths]:
        raise SetupError(
            f"The checksums of {len(other)} jars are not the pinned ones: {list_some(other)}.",
            hint="copy them again from where they came from, or run it without --from.",
        )
    for name, [path, *_] in good.items():
        shutil.copyfile(path, folder / name)


def list_some(names: Iterable[str]) -> str:
    """List the first few names."""
    first, more = [*names][:5], [*names][5:]
    return ", ".join(first) + (f" and {len(more)} more" if more else "")


def archive_classes(jars: Path) -> str:
    """Archive the classes that Spark loads unless an archive of this Java, Spark and jars is there; say what is."""
    from seamline.local.install import write_class_archive
    from seamline.runtime.java import CLASSES, java_home

    archive = jars / CLASSES
    stamp = archive.with_suffix(".stamp")
    try:
        java = java_home()
    except SetupError as problem:
        return f"Spark's classes are not archived: {problem.message}"
    release = java / "release"
    made_of = [metadata.version("pyspark"), str(java), release.read_text() if release.is_file() else ""]
    made_of += sorted(path.name for path in (jars / "spark").iterdir())
    if not archive.exists() or not stamp.is_file() or stamp.read_text() != "\n".join(made_of):
        environ = {
            **os.environ,
            "SEAMLINE_JARS": str(jars),
            "JAVA_HOME": str(java),
            "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -XX:TieredStopAtLevel=1".strip(),
        }
        stamp.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as home:
            write_class_archive(sys.executable, archive, {**environ, "SEAMLINE_HOME": home}, jars / LOG)
        stamp.write_text("\n".join(made_of))
    if archive.exists():
        return f"Spark's classes are archived in {archive}"
    return f"Spark's classes could not be archived, so that it starts without: {jars / LOG} says why."


COMMANDS = (setup,)
