"""``python -m release``: build, check and describe a release, all into one folder."""

from __future__ import annotations

import argparse
import hashlib
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from release.archives import build_twice, read_revision, run_build_step
from release.bill import require_valid, write_bill
from release.components import list_jars, list_packages
from release.licences import list_licences, load_licences, require_allowed
from seamline.model.errors import SeamlineError, SetupError
from seamline.version import RECORDED

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"


def make_release(root: Path, target: Path) -> str:
    """Make all that a release has, anew, in ``target``; return its version.

    SetupError where it cannot be built again with the same bytes, or something in it may not be given away.
    """
    revision = read_revision(root)
    licences = load_licences()
    packages, asked = list_packages(root, licences)
    components = [*packages, *list_jars(licences)]
    require_allowed(components, licences)
    with tempfile.TemporaryDirectory() as scratch:
        archives = build_twice(root, revision, Path(scratch))
        version = str(parse_wheel_filename(archives[1].name)[1])
        require_recorded(version)
        run_build_step([sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)], root)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for archive in archives:
            shutil.copyfile(archive, target / archive.name)
    bill = write_bill(version, revision.at, components, asked)
    require_valid(bill)
    (target / f"seamline-{version}.cdx.json").write_text(bill)
    here = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    (target / "LICENCES.md").write_text(list_licences(components, version, here))
    (target / SUMS).write_text(sum_files(path for path in target.iterdir() if path.name != SUMS))
    return version


def require_recorded(version: str) -> None:
    """Raise SetupError where a tag says another release than the one that trees without tags take themselves for."""
    if "+" not in version and version != RECORDED:
        raise SetupError(
            f"The tag says {version}, include/seamline/version.py and CHANGELOG.md say {RECORDED}.",
            hint="take the tag back, or record the release in both, and commit that before it is tagged.",
        )


def sum_files(files: Iterable[Path]) -> str:
    """List the checksums of files as ``sha256sum --check`` reads them."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)
    )


def main(argv: list[str]) -> int:
    """Make a release, and say what it is made of."""
    parser = argparse.ArgumentParser(prog="make dist", description="Build and check a release.")
    parser.add_argument("--root", type=Path, default=ROOT, help="checkout to release")
    parser.add_argument("--to", type=Path, help="folder to fill; dist of the checkout if it is not given")
    options = parser.parse_args(argv)
    target, began = (options.to or options.root / "dist").resolve(), time.monotonic()
    try:
        version = make_release(options.root.resolve(), target)
    except SeamlineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for file in sorted(target.iterdir()):
        print(f"{file.stat().st_size:>10,}  {file}")
    kind = "a development version" if Version(version).is_devrelease or "+" in version else "a release"
    print(f"{version}, {kind}: built three times with the same bytes, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
