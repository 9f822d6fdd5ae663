"""What git knows of a folder, and a revision's files beside it; nothing in the repository is changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from seamline.model.errors import NotFound, SetupError

POINTERS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Variables by which git, in its hooks, names a repository: it is looked for by the folder instead."""
FAR = (
    "fetch it, as with `git fetch origin`; in a workflow, check out with fetch-depth: 0 (GitHub) or GIT_DEPTH: 0 "
    "(GitLab)."
)


@dataclass(frozen=True)
class BaseRevision:
    """The revision that definitions are compared with."""

    commit: str
    """Its full id."""
    asked: str
    """What was asked for: a branch, a tag, a commit."""
    note: str = ""
    """What is to be known of it; empty for nothing."""

    def __str__(self) -> str:
        return f"{self.asked} ({self.commit[:12]})"


@dataclass(frozen=True)
class Repository:
    """A work tree."""

    root: Path
    """Its top folder."""

    def find_base(self, asked: str) -> BaseRevision:
        """Find where the work tree's branch left the revision asked for; NotFound if it is not here.

        Where this clone does not have their common past, that is the revision itself.
        """
        commit = self.resolve(asked)
        found = run_git(self.root, "merge-base", commit, "HEAD")
        if found.returncode == 0 and found.stdout.strip():
            return BaseRevision(found.stdout.strip(), asked)
        return BaseRevision(
            commit,
            asked,
            f"this clone does not have the common past of {asked} and HEAD: what {asked} has gained since is shown as "
            "taken back",
        )

    def resolve(self, asked: str) -> str:
        """Find the commit that is asked for; NotFound."""
        found = run_git(
            self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}"
        )
        if found.returncode == 0:
            return found.stdout.strip()
        shallow = run_git(self.root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"
        raise NotFound(
            f"There is no revision {asked!r} in {self.root}{', which is a shallow clone' if shallow else ''}.",
            hint=FAR
            if shallow
            else "name a branch, a tag or a commit; `git fetch` brings those of the remote.",
        )

    def has_edits(self, folder: Path) -> bool:
        """Return whether files of a folder differ from HEAD, or are not in git."""
        found = run_git(self.root, "--no-optional-locks", "status", "--porcelain", "--", str(folder))
        return bool(found.stdout.strip())

    @contextmanager
    def open_files(self, commit: str) -> Iterator[Path]:
        """Write the files of a commit into a folder that is there while the block runs; SetupError."""
        with TemporaryDirectory(prefix="seamline-revision-") as made:
            folder = Path(made).resolve() / "files"
            folder.mkdir()
            own = {"GIT_INDEX_FILE": str(Path(made).resolve() / "index"), "GIT_LFS_SKIP_SMUDGE": "1"}
            for arguments in (("read-tree", commit), ("checkout-index", "--all", f"--prefix={folder}/")):
                done = run_git(self.root, *arguments, env=own)
                if done.returncode:
                    raise SetupError(
                        f"git cannot write the files of {commit[:12]}: {format_git_error(done)}.",
                        hint="a partial or damaged clone lacks some: `git fsck` says which.",
                    )
            yield folder


def find_repository(folder: Path) -> Repository:
    """Find the work tree that a folder is in; SetupError where there is none, or no git."""
    near = next(each for each in (folder, *folder.parents) if each.is_dir())
    try:
        found = run_git(near, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        raise SetupError(
            "There is no git on PATH.", hint="--diff reads a revision by git; install it."
        ) from None
    if found.returncode or not found.stdout.strip():
        raise SetupError(
            f"{folder} is in no git work tree: {format_git_error(found)}.",
            hint="--diff compares with a revision in git: run it in a clone. If git speaks of ownership, as in a "
            f"container: git config --global --add safe.directory {near}",
        )
    return Repository(Path(found.stdout.strip()).resolve())


def run_git(
    folder: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, in English, without asking anybody anything."""
    kept = {name: value for name, value in os.environ.items() if name not in POINTERS}
    return subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def format_git_error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the first line of what git said of its failure."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ").rstrip(".") if lines else f"exit code {done.returncode}"
