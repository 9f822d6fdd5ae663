"""A release: anybody builds the same bytes again, and nothing is in it that may not be given away."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from importlib import metadata
from io import BytesIO
from pathlib import Path

import pytest
from tests.unit.project.test_version import git

from release import licences
from release.__main__ import main, require_recorded
from release.archives import strip_times
from release.bill import require_valid, write_bill
from release.components import Component, gather_needs, list_jars, require_pinned
from seamline.model.errors import SetupError
from seamline.version import RECORDED

ROOT = Path(__file__).parents[3]
BUILT_FROM = ("pyproject.toml", "LICENSE", "README.md", "requirements.txt", "requirements-image.txt")
LIBRARY = Component("pkg:pypi/lib@1", "lib", "1", "MIT", ("pkg:pypi/other@2",))
OTHER = Component("pkg:pypi/other@2", "other", "2", "ISC")
JAR = Component("pkg:maven/org.x/jar@3?type=jar", "org.x:jar", "3", "Apache-2.0", sha256="a" * 64)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of what a build reads, as it is in this one, tagged as the release that is recorded."""
    made = tmp_path / "check out"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "include", made / "include", ignore=ignored, symlinks=True)
    for name in BUILT_FROM:
        shutil.copy2(ROOT / name, made)
    git(made, "init", "--quiet")
    git(made, "add", ".")
    git(made, "commit", "--quiet", "--message", "all")
    git(made, "tag", f"v{RECORDED}")
    return made


@pytest.mark.faults
def test_a_release_is_whole_and_says_what_is_in_it(checkout: Path, tmp_path: Path) -> None:
    """Whoever mistrusts it compares checksums; nothing of an earlier one is left in the folder."""
    target = tmp_path / "dist"
    target.mkdir()
    (target / "seamline-0.0.1.tar.gz").write_bytes(b"")
    command = [sys.executable, "-m", "release", "--root", str(checkout), "--to", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name = f"seamline-{RECORDED}"
    wheel, sdist, bill = f"{name}-py3-none-any.whl", f"{name}.tar.gz", f"{name}.cdx.json"
    assert {path.name for path in target.iterdir()} == {wheel, sdist, bill, "LICENCES.md", "SHA256SUMS"}
    sums = dict(reversed(line.split("  ")) for line in (target / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        each: hashlib.sha256((target / each).read_bytes()).hexdigest()
        for each in (wheel, sdist, bill, "LICENCES.md")
    }
    at = int(git(checkout, "log", "-1", "--format=%ct"))
    with tarfile.open(target / sdist) as archive:
        assert {(each.mtime, each.uid, each.uname) for each in archive} == {(at, 0, "")}
        assert all(each.isfile() or each.isdir() for each in archive)
    with zipfile.ZipFile(target / wheel) as archive:
        about = archive.read(f"{name}.dist-info/METADATA").decode()
    assert f"\nVersion: {RECORDED}\n" in about and "# Seamline" in about
    listed = {each["purl"] for each in json.loads((target / bill).read_text())["components"]}
    assert {
        f"pkg:pypi/pyspark@{metadata.version('pyspark')}",
        "pkg:maven/io.delta/delta-storage@4.4.0?type=jar",
    } <= listed
    assert not any(each.startswith("pkg:pypi/pytest@") for each in listed), "tools are no part of it"
    assert (target / "LICENCES.md").read_text().count("\n|") == len(listed) + 2


def test_what_is_not_committed_is_refused(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else could build it; the folder of the last release stays as it is."""
    (checkout / "pyproject.toml").write_text("# changed")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "kept").write_text("")
    assert main(["--root", str(checkout), "--to", str(tmp_path / "dist")]) == 6
    said = capsys.readouterr().err
    assert "1 files are changed and not committed, among them pyproject.toml." in said and "Hint: " in said
    assert (tmp_path / "dist" / "kept").exists()


def test_a_tag_that_nobody_recorded_is_refused() -> None:
    """A tree without tags would take itself for another release."""
    require_recorded(RECORDED)
    require_recorded("9.9.9.dev1+g0123")
    with pytest.raises(SetupError, match=r"The tag says 9\.9\.9"):
        require_recorded("9.9.9")


def packed(at: int, owner: str, mode: int, names: list[str]) -> bytes:
    """Pack an archive as somebody would."""
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.uname, member.uid, member.mode, member.size = at, owner, len(owner), mode, 4
            archive.addfile(member, BytesIO(b"text"))
    return made.getvalue()


def test_an_archive_says_nothing_of_who_packed_it() -> None:
    """When, by whom, with which umask and in which order; but a program stays one."""
    one, other = packed(1, "ada", 0o600, ["a", "b"]), packed(2, "grace", 0o664, ["b", "a"])
    assert one != other
    assert strip_times(one, 7) == strip_times(other, 7) != strip_times(other, 8)
    with tarfile.open(fileobj=BytesIO(strip_times(packed(1, "a", 0o700, ["x"]), 7))) as archive:
        assert archive.getmember("x").mode == 0o755


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("AGPL-3.0-only", False),
        ("MIT OR AGPL-3.0-only", True),
        ("MIT AND AGPL-3.0-only", False),
        ("MIT AND ISC OR AGPL-3.0-only", True),
        ("(MIT OR ISC) AND AGPL-3.0-only", False),
        ("GPL-3.0-or-later WITH GCC-exception-3.1", True),
        ("GPL-3.0-or-later", False),
        ("", False),
    ],
)
def test_a_licence_is_allowed_by_one_of_its_choices(expression: str, fine: bool) -> None:
    """What is not on the list is no reason to guess."""
    known = licences.load_licences()
    assert known.allows(expression) is fine
    if not fine:
        with pytest.raises(SetupError, match="lib 1: "):
            licences.require_allowed([OTHER, replace(LIBRARY, licence=expression)], known)


def test_what_is_written_by_hand_is_still_needed() -> None:
    """An entry that nothing asks for is one that nobody looks at."""
    known = licences.load_licences()
    without = replace(known, packages={})
    for name in known.packages:
        with pytest.raises(SetupError, match=f"The licence of {name} is not understood"):
            without.read_package_licence(name)
    used = {each.name for each in list_jars(known)}
    assert {*known.jars} <= used | {name.partition(":")[0] for name in used}
    with pytest.raises(SetupError, match="Nobody has looked up the licence of org.new:thing"):
        known.read_jar_licence("org.new", "thing")


def test_other_versions_than_the_pinned_ones_are_refused(tmp_path: Path) -> None:
    """The list would be of what the release was not tested with."""
    pins = tmp_path / "requirements.txt"
    pins.write_text(f"# made\nclick=={metadata.version('click')}\nrich==0.1 ; python_version < '3'\n")
    require_pinned(["click"], pins)
    with pytest.raises(SetupError, match=r"2 packages .* among them httpx .*pinned: not"):
        require_pinned(["click", "rich", "httpx"], pins)


def test_what_is_asked_for_is_followed_to_its_end() -> None:
    """Extras that are asked for on the way count as well."""
    needs = gather_needs(["kafka-python[zstd]"])
    assert "zstandard" in needs["kafka-python"]
    assert gather_needs(["kafka-python"]) == {"kafka-python": set()}


def test_a_bill_is_the_same_each_time_and_valid() -> None:
    """Its serial number is made of what it lists, and a package is listed with what it asks for."""
    one = write_bill("1.0", 1_700_000_000, [LIBRARY, OTHER, JAR], [LIBRARY.purl])
    assert one == write_bill("1.0", 1_700_000_000, [JAR, OTHER, LIBRARY], [LIBRARY.purl])
    require_valid(one)
    serials = {json.loads(write_bill(each, 0, [OTHER], []))["serialNumber"] for each in ("1.0", "1.1")}
    assert len(serials) == 2
    graph = {each["ref"]: each["dependsOn"] for each in json.loads(one)["dependencies"]}
    assert graph["pkg:pypi/seamline@1.0"] == [JAR.purl, LIBRARY.purl]
    assert graph[LIBRARY.purl] == [OTHER.purl]
    with pytest.raises(SetupError, match="not valid CycloneDX"):
        require_valid(one.replace('"library"', '"a library"'))
