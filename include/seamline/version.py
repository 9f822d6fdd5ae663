"""Which version this is: the one installed, or of a checkout the one that its tags say; stdlib only, builds read it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

RECORDED = "0.1.0"
"""The newest release of CHANGELOG.md, for a tree without tags."""
DESCRIBED = re.compile(
    r"v(?P<release>\d+(?:\.\d+)*)(?P<pre>(?:a|b|rc)\d+)?-(?P<after>\d+)-g(?P<hash>[0-9a-f]+)(?P<dirty>-dirty)?"
)
BARE = re.compile(r"(?P<hash>[0-9a-f]+)(?P<dirty>-dirty)?")


def find_version(tree: Path) -> str:
    """Return the version of the tree that holds include/; of the installed package if that is no source."""
    if not (tree / "pyproject.toml").is_file():
        from importlib import metadata

        return metadata.version("seamline")
    # A source distribution may have been unpacked within somebody's repository.
    if (tree / "PKG-INFO").is_file():
        return read_built_version((tree / "PKG-INFO").read_text(encoding="utf-8"))
    return name_version(describe_tree(tree) if (tree / ".git").exists() else "")


def read_built_version(text: str) -> str:
    """Read the version that a source distribution was built as."""
    found = re.search(r"^Version: (\S+)$", text, re.MULTILINE)
    return found[1] if found else f"{RECORDED}+unknown"


def describe_tree(tree: Path) -> str:
    """Ask git for the newest release's tag, the commits since, and the revision; nothing where it cannot say."""
    command = [
        "git",
        "describe",
        "--tags",
        "--long",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--match",
        "v[0-9]*",
    ]
    # Within a hook these name another repository.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(command, cwd=tree, env=kept, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def name_version(described: str) -> str:
    """Make a version of what git describes: the tag's own, or one between that release and the next.

    ``v0.1.0-0-gHASH`` is 0.1.0, ``v0.1.0-3-gHASH`` is 0.1.1.dev3+gHASH; without a tag it is 0.1.0+gHASH, and
    without git 0.1.0+unknown, after the release that is recorded.
    """
    if found := DESCRIBED.fullmatch(described):
        here = f"+g{found['hash']}" + (".dirty" if found["dirty"] else "")
        exact = found["after"] == "0" and not found["dirty"]
        release = found["release"] + (found["pre"] or "")
        return release if exact else f"{raise_last_number(release)}.dev{found['after']}{here}"
    if found := BARE.fullmatch(described):
        return f"{RECORDED}+g{found['hash']}" + (".dirty" if found["dirty"] else "")
    return f"{RECORDED}+unknown"


def raise_last_number(release: str) -> str:
    """Return the release that comes next at the earliest: 0.1.1 after 0.1.0, 0.2.0rc2 after 0.2.0rc1."""
    return re.sub(r"\d+$", lambda last: str(int(last[0]) + 1), release)


VERSION = find_version(Path(__file__).resolve().parents[2])
