"""The source distribution and the wheel: each built twice, and from each other, until nobody can tell them apart."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from seamline.model.errors import SetupError

BUILD = "import setuptools.build_meta as b, sys; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"
UMASK = 0o022
"""Files' modes are in the archives: they are not those of whoever builds."""


@dataclass(frozen=True)
class Revision:
    """What a release is built of."""

    commit: str
    """Its whole hash."""
    at: int
    """When it was committed, in seconds since 1970."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a build, with nothing that would show in it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_"))}
        return {**kept, "SOURCE_DATE_EPOCH": str(self.at), "PYTHONHASHSEED": "0", "LC_ALL": "C"}


def read_revision(root: Path) -> Revision:
    """Read which revision is checked out; SetupError where something is changed, for nobody could build that again."""
    try:
        changed = run_build_step(["git", "status", "--porcelain", "--untracked-files=no"], root).splitlines()
        commit, at = run_build_step(["git", "log", "-1", "--format=%H %ct"], root).split()
    except OSError as problem:
        raise SetupError(f"{problem}.", hint="a release is made of a git checkout.") from problem
    if changed:
        raise SetupError(
            f"{len(changed)} files are changed and not committed, among them {changed[0][3:]}.",
            hint="commit them, or git stash; a release is built of a revision.",
        )
    return Revision(commit, int(at))


def build_twice(root: Path, revision: Revision, scratch: Path) -> list[Path]:
    """Build both archives in ``scratch`` and return them; SetupError where a second build has other bytes.

    The second is built in another folder, and its wheel of the source distribution alone.
    """
    first, second = (build_archives(root, revision, scratch / name) for name in ("first", "other place"))
    unpacked = unpack(second[0], scratch / "unpacked")
    third = [second[0], build_archive("wheel", unpacked, revision, scratch / "third")]
    for again in (second, third):
        for one, other in zip(first, again, strict=True):
            if one.name != other.name or one.read_bytes() != other.read_bytes():
                raise SetupError(
                    f"Two builds of {revision.commit[:12]} differ: {one} and {other}.",
                    hint="compare them; something of the machine or of the time is in them.",
                )
    return first


def build_archives(root: Path, revision: Revision, place: Path) -> list[Path]:
    """Build the source distribution and the wheel of a fresh clone of what is checked out, tags included."""
    source = place / "source"
    run_build_step(["git", "clone", "--quiet", "--shared", str(root), str(source)], root)
    run_build_step(["git", "checkout", "--quiet", "--detach", revision.commit], source)
    sdist = build_archive("sdist", source, revision, place)
    sdist.write_bytes(strip_times(sdist.read_bytes(), revision.at))
    return [sdist, build_archive("wheel", source, revision, place)]


def build_archive(kind: str, source: Path, revision: Revision, place: Path) -> Path:
    """Build an archive, ``sdist`` or ``wheel``, as pip would."""
    place.mkdir(parents=True, exist_ok=True)
    said = run_build_step([sys.executable, "-c", BUILD, kind, str(place)], source, revision.environ)
    return place / said.splitlines()[-1]


def strip_times(archive: bytes, at: int) -> bytes:
    """Return a .tar.gz with the same files in order of their names, all of one time and of nobody."""
    packed = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(archive)) as old,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=at) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            content = old.extractfile(member) if member.isfile() else None
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = at
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, content)
    return packed.getvalue()


def unpack(sdist: Path, place: Path) -> Path:
    """Unpack a source distribution, and return its one folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    [folder] = place.iterdir()
    return folder


def run_build_step(command: list[str], place: Path, environ: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it prints; SetupError with its last words if it fails."""
    done = subprocess.run(
        command, cwd=place, env=environ, umask=UMASK, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing was said"]
        raise SetupError(
            f"{' '.join(command[:3])} failed: {said[-1]}", hint=f"run it in {place} to see all of it."
        )
    return done.stdout
