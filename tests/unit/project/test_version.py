"""The version is what the tags say, and never passes for a release that it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

import seamline
from seamline.cli import main
from seamline.version import RECORDED, find_version, name_version, raise_last_number

ROOT = Path(__file__).parents[3]
AUTHOR = (
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@b",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "tag.gpgsign=false",
)


def git(tree: Path, *words: str) -> str:
    """Run git as somebody."""
    done = subprocess.run(["git", *AUTHOR, *words], cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of one commit."""
    made = tmp_path / "a tree"
    made.mkdir()
    (made / "pyproject.toml").write_text("")
    git(made, "init", "--quiet")
    commit(made)
    return made


def commit(tree: Path) -> str:
    """Commit something, and return the revision as versions have it."""
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "one")
    return "g" + git(tree, "rev-parse", "--short=12", "HEAD")


def test_a_tag_is_a_release_and_what_follows_is_before_the_next(tree: Path) -> None:
    """Development versions say how many commits after which release, and which revision."""
    git(tree, "tag", "v0.1.0")
    assert find_version(tree) == "0.1.0"
    commit(tree)
    here = commit(tree)
    assert find_version(tree) == f"0.1.1.dev2+{here}"
    git(tree, "tag", "--annotate", "v0.2.0rc1", "--message", "try it")
    assert find_version(tree) == "0.2.0rc1"
    here = commit(tree)
    assert find_version(tree) == f"0.2.0rc2.dev1+{here}"
    git(tree, "tag", "later")
    assert find_version(tree) == f"0.2.0rc2.dev1+{here}", "other tags say nothing"


def test_changes_that_nobody_has_committed_are_no_release(tree: Path) -> None:
    """Two such trees would have the same name and other bytes."""
    git(tree, "tag", "v0.1.0")
    (tree / "pyproject.toml").write_text("# changed")
    assert re.fullmatch(r"0\.1\.1\.dev0\+g[0-9a-f]{12}\.dirty", find_version(tree))


def test_a_clone_without_tags_says_its_revision(tree: Path) -> None:
    """CI fetches one commit."""
    here = commit(tree)
    assert find_version(tree) == f"{RECORDED}+{here}"


def test_a_tree_within_a_repository_of_somebody_else_is_not_described(tree: Path) -> None:
    """An image's build has no .git, and a folder above it may have one."""
    git(tree, "tag", "v9.9.9")
    inner = tree / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("")
    assert find_version(inner) == f"{RECORDED}+unknown"
    (inner / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: seamline\nVersion: 0.3.0\n")
    assert find_version(inner) == "0.3.0"


def test_without_git_there_is_a_version(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does another repository's hook name ours."""
    monkeypatch.setenv("GIT_DIR", str(tree / "nowhere"))
    assert find_version(tree).startswith(f"{RECORDED}+g")
    monkeypatch.setenv("PATH", str(tree))
    assert find_version(tree) == f"{RECORDED}+unknown"


def test_versions_are_in_order() -> None:
    """pip takes the greatest: what follows a release is after it, and before the next."""
    described = [
        "v0.1.0-0-gaa",
        "aa",
        "v0.1.0-2-gbb",
        "v0.1.0-11-gcc",
        "v0.1.1-0-gdd",
        "v0.2.0rc1-0-gee",
        "v0.2.0-0-gff",
    ]
    versions = [Version(name_version(each)) for each in described]
    assert versions == sorted(versions) and len({*versions}) == len(versions)
    assert raise_last_number("1.9") == "1.10"


def test_the_recorded_release_is_the_newest_one_of_the_changelog() -> None:
    """It stands for the tag where there is none."""
    releases = re.findall(
        r"^## (\d\S*) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert releases[0] == RECORDED
    assert f"\n  image: seamline:{RECORDED}\n" in (ROOT / "docker-compose.yaml").read_text()


def test_everyone_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """The command, the package, and what a build would write."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"seamline, version {seamline.__version__}\n"
    read = "from setuptools.config.expand import read_attr as read"
    code = f"{read}; print(read('seamline.version.VERSION', {{'': 'include'}}))"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == seamline.__version__
