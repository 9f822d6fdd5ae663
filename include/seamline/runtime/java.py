"""Finds Java and the pinned jars; makes the Java from PyPI usable."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seamline.model.errors import SetupError

OLDEST = 17
PARTS = Path(__file__).with_name("java_parts.toml")
CLASSES = "spark.jsa"
BEHIND = "SPARK_DIST_CLASSPATH"
"""Where Spark's launcher looks for what goes behind its own jars."""
# An archive that does not fit is no reason to speak.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# Batches of records are garbage when they are sent: what keeps its pauses short makes each write dearer. It would let
# garbage fill a third of the heap, and nothing is gained by that.
COLLECTOR = "-XX:+UseParallelGC -XX:MaxNewSize=256m"
A_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# The second compiler takes as much CPU as all else that a small build's JVM does, and pays it back later than that.
BRIEF = "-XX:TieredStopAtLevel=1"
# Ten times Java's own. What each record goes through is called this often within a second, and compiled as it would be;
# on what runs a few times an epoch the second compiler would spend as much CPU as tasks do over the first millions.
LATER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)
# Spark's upper and lower follow the JVM's language: Turkish, Greek, Lithuanian and Armenian have rules of their own.
LANGUAGE = "-Duser.language=en"
READ_BY_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
# Spark asks for one module that it does not need and that the Java from PyPI lacks.
SHIM = """\
#!/bin/sh
# Starts a Java without the one module it lacks.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, order=True)
class Part:
    """One pinned jar."""

    organisation: str
    """The Maven group."""
    name: str
    """The Maven artifact."""
    revision: str
    """The Maven version."""
    sha256: str
    """Of the file's bytes, in hexadecimal."""
    classifier: str = ""
    """What is said beside the version of a file that is not the jar itself; empty for the jar."""
    extension: str = "jar"
    """How its file's name ends."""

    @property
    def jar(self) -> str:
        """The name of its file."""
        classified = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{classified}.{self.extension}"


@dataclass(frozen=True)
class Java:
    """A Java that is there."""

    home: Path
    """Its JAVA_HOME."""
    version: int
    """Its feature version, as 17."""


def list_java_parts(group: str, listing: Path = PARTS) -> list[Part]:
    """Return the pinned parts of ``group``: ``spark``, ``s3`` or ``kafka``."""
    entries: Mapping[str, str] = tomllib.loads(listing.read_text())[group]
    return sorted(_part(coordinates, digest) for coordinates, digest in entries.items())


def spark_jars() -> list[Path]:
    """Return the jars that Spark needs beside its own: Delta and the Kafka source. SetupError if one is absent."""
    return _jars("spark")


def is_in_bucket(warehouse: str) -> bool:
    """Return whether a warehouse is in a bucket that Spark reads by the jars for S3."""
    return warehouse.startswith("s3://")


def store_jars() -> list[Path]:
    """Return the jars that Spark needs for a warehouse in an S3 bucket. SetupError if one is absent."""
    return _jars("s3", option=" --store")


def kafka_jars() -> list[Path]:
    """Return the class path of the Kafka broker. SetupError if a jar is absent."""
    return _jars("kafka", option=" --broker")


@functools.cache
def java_home() -> Path:
    """Return a folder with ``bin/java`` of version 17 or later: JAVA_HOME, PATH's, the setup's; else SetupError."""
    own = jar_folder().with_name("java")
    if found := find_java():
        return found.home
    if (own / "bin" / "java").exists():
        return own
    raise SetupError(
        f"No Java {OLDEST} or later was found, neither by JAVA_HOME nor on PATH nor at {own}.",
        hint="install Java 17 or later, or set JAVA_HOME; in a checkout, make setup installs one.",
    )


def jar_folder() -> Path:
    """Return the folder of the fetched jars: SEAMLINE_JARS, else ``.seamline/jars`` here."""
    return Path(os.environ.get("SEAMLINE_JARS") or ".seamline/jars").absolute()


def class_path() -> str:
    """Return Spark's extra jars as a class path: from jars that Spark adds later, no class is in the archive."""
    return os.pathsep.join(map(str, spark_jars()))


def store_class_path(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the setting by which a JVM gets the jars for a bucket: behind Spark's own, so that the archive fits."""
    given = [each for each in environ.get(BEHIND, "").split(os.pathsep) if each]
    ours = [str(jar) for jar in store_jars() if str(jar) not in given]
    return {BEHIND: os.pathsep.join([*given, *ours])}


def jvm_options(others: str = "", *, brief: bool = False) -> str:
    """Return what every driver's JVM is started with: archive, collector, compilers, language, SEAMLINE_JAVA_OPTIONS.

    A JVM does not start with two collectors: ours is left out where ``others`` of its options name one. ``brief``:
    it ends before it has done much.
    """
    archive, asked = jar_folder() / CLASSES, os.environ.get("SEAMLINE_JAVA_OPTIONS", "")
    given = f'"-XX:SharedArchiveFile={archive}" -Xshare:auto {QUIET}' if archive.exists() else ""
    everywhere = " ".join(os.environ.get(name, "") for name in READ_BY_JAVA)
    ours = "" if A_COLLECTOR.search(f"{asked} {others} {everywhere}") else COLLECTOR
    return " ".join(each for each in (given, ours, BRIEF if brief else LATER, LANGUAGE, asked) if each)


def find_java() -> Java | None:
    """Return a Java 17+ that the machine has (JAVA_HOME first, then PATH), or None."""
    named = os.environ.get("JAVA_HOME")
    candidates = [Path(named) / "bin" / "java" if named else None, shutil.which("java")]
    found = (probe_java(Path(candidate)) for candidate in candidates if candidate)
    return next((java for java in found if java and java.version >= OLDEST), None)


def probe_java(java: Path) -> Java | None:
    """Ask an executable which Java it is; None if it does not run."""
    try:
        return java_in(_run(java, "-XshowSettings:properties", "-version").stderr)
    except (OSError, subprocess.TimeoutExpired):
        return None


def java_in(text: str) -> Java | None:
    """Read what ``java -XshowSettings:properties -version`` prints."""
    place = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)
    return Java(Path(place[1].strip()), int(version[1])) if place and version else None


def lacks_vector(java: Path) -> bool:
    """Say whether this Java refuses the module that Spark asks for, as those cut down with jlink do."""
    return _run(java, "--add-modules=jdk.incubator.vector", "-version").returncode != 0


def _run(java: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([java, *arguments], capture_output=True, text=True, timeout=60, check=False)


def write_shim(place: Path, real: Path) -> None:
    """Make ``place`` a JAVA_HOME whose ``bin/java`` starts ``real`` without what ``real`` lacks."""
    java = place / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    quoted = "'" + str(real).replace("'", "'\\''") + "'"
    fresh = java.with_suffix(".new")
    fresh.write_text(SHIM.format(java=quoted))
    fresh.chmod(0o755)
    fresh.replace(java)


def _part(coordinates: str, digest: str) -> Part:
    """Make a part of "organisation:name:revision", or with ":classifier@extension" behind it."""
    organisation, name, revision, *other = coordinates.split(":")
    classifier, _, extension = "".join(other).partition("@")
    return Part(organisation, name, revision, digest, classifier, extension or "jar")


def _jars(group: str, option: str = "") -> list[Path]:
    folder = jar_folder() / group
    jars = [folder / part.jar for part in list_java_parts(group)]
    if missing := [jar.name for jar in jars if not jar.exists()]:
        raise SetupError(
            f"{len(missing)} JAR files are missing in {folder}, among them {missing[0]}.",
            hint=f"run seamline setup{option} to fetch them, or set SEAMLINE_JARS to their folder.",
        )
    return jars
