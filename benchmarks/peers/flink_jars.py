"""Brings Flink to `.seamline/flink` and finds it there: its jars from PyPI, connectors from Maven, Parquet of Spark.

    python -m benchmarks.peers.flink_jars

Every jar is pinned by its checksum in flink.toml; those of Spark are what requirements.txt pins. What is there is kept.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from seamline.local import install, ivy
from seamline.local.bootstrap import set_up_alone
from seamline.local.checkout import Checkout
from seamline.model.errors import SetupError
from seamline.runtime.java import list_java_parts

CHECKOUT = Checkout(Path(__file__).resolve().parents[2])
FLINK = CHECKOUT.state / "flink"
PACKAGE = "apache-flink-libraries"
LISTING = Path(__file__).with_name("flink.toml")
OF_SPARK = (
    "commons-pool-",
    "hadoop-client-",
    "jackson-annotations-",
    "jackson-core-",
    "jackson-databind-",
    "jts-core-",
    "parquet-",
    "snappy-java-",
    "zstd-jni-",
)
"""Parquet and what it calls; flink-parquet has none of it inside."""


def class_path() -> list[Path]:
    """Return every jar that Flink is started with. SetupError if one is absent."""
    own = [
        FLINK / group / part.jar
        for group in ("wheel", "connectors")
        for part in list_java_parts(group, LISTING)
    ]
    if lacking := sum(not jar.exists() for jar in own):
        raise SetupError(
            f"Flink is not set up: make bench-flink fetches what {FLINK} lacks, {lacking} of {len(own)} jars."
        )
    return [*own, *of_spark()]


def of_spark() -> list[Path]:
    """Return the jars that pyspark lends. SetupError if it has not all of them."""
    import pyspark

    there = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    found = [jar for jar in there if jar.name.startswith(OF_SPARK)]
    if lacking := [name for name in OF_SPARK if not any(jar.name.startswith(name) for jar in found)]:
        raise SetupError(
            f"This pyspark has no jar {lacking[0]}*, which Flink's Parquet needs.",
            hint="run make setup, which installs the pinned pyspark.",
        )
    return found


def chosen(only: str, systems: Iterable[str]) -> list[str]:
    """Name the systems to measure: ``only`` these, or all; where Flink is not set up, say so and leave out its own."""
    names = only.split(",") if only else list(systems)
    others = [name for name in names if not name.startswith("flink")]
    if others == names:
        return names
    try:
        class_path()
    except SetupError as error:
        say(f"{error.message} Left out: {', '.join(name for name in names if name not in others)}.")
        return others
    return names


def set_up() -> None:
    """Fetch what is missing; a second set-up waits for the first."""
    with set_up_alone(CHECKOUT.state / "setup.lock"):
        if ivy.list_missing_parts(list_java_parts("wheel", LISTING), FLINK / "wheel"):
            say("Fetching Flink (300 MB) ...")
            unpack_wheel()
        if ivy.list_missing_parts(list_java_parts("connectors", LISTING), FLINK / "connectors"):
            say("Fetching Flink's connectors ...")
            install.fetch_parts(CHECKOUT, "connectors", LISTING, FLINK / "connectors")


def unpack_wheel() -> None:
    """Download the package as pip is told to, and keep the jars that are pinned."""
    scratch = FLINK / "wheel.new"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    wanted = list_java_parts("wheel", LISTING)
    [version] = [part.revision for part in wanted if part.name == "flink-dist"]
    pip = [str(CHECKOUT.python), "-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir"]
    asked = ["--no-deps", "--only-binary=:all:", "--dest", str(scratch), f"{PACKAGE}=={version}"]
    install.run_step(CHECKOUT, [*pip, *asked], "pip could not fetch Flink")
    names = {part.jar for part in wanted}
    [wheel] = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        for entry in packed.infolist():
            if (name := Path(entry.filename).name) in names:
                entry.filename = name
                packed.extract(entry, scratch)
    ivy.move_verified_parts(wanted, scratch, FLINK / "wheel")
    shutil.rmtree(scratch)


def say(line: str) -> None:
    """Return what is being done."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Set Flink up and say where it is."""
    try:
        set_up()
        found = class_path()
    except SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    say(f"Flink is set up: {len(found)} jars, its own in {FLINK}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
