"""The definitions of the work tree and of another revision, each loaded by a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from seamline.local.revisions.git_revisions import BaseRevision, find_repository
from seamline.model.errors import SetupError
from seamline.plan.revision.definition_diff import DefinitionDiff, compare_revisions
from seamline.plan.revision.revision_facts import RevisionFacts

DESCRIBER = "seamline.local.revisions.described_definitions"
LOADED_WITHIN = 600
"""Seconds that a revision may take to load."""


@dataclass(frozen=True)
class RevisedDefinitions:
    """The work tree's definitions, compared with those of a revision."""

    base: BaseRevision
    """The revision."""
    diff: DefinitionDiff
    """What differs."""
    names: tuple[str, ...]
    """All pipelines of both."""
    notes: tuple[str, ...]
    """What is to be known of the comparison."""


def compare_with_revision(folder: Path, asked: str) -> RevisedDefinitions:
    """Compare the definitions in a folder with those that a revision has there.

    Raises SetupError outside a git work tree, NotFound for a revision that is not in it.
    """
    repository = find_repository(folder)
    root = repository.root
    if not folder.is_relative_to(root):
        raise SetupError(
            f"The definitions in {folder} are not below {root}.", hint="run this in the clone that has them."
        )
    base = repository.find_base(asked)
    notes = [base.note] if base.note else []
    if repository.has_edits(folder):
        notes.append("the work tree has changes that are not committed; they are compared too")
    own = [str(Path(each or ".").absolute()) for each in sys.path]
    after = load_definitions(folder, Path.cwd(), own)
    with repository.open_files(base.commit) as files:
        there = files / folder.relative_to(root)
        if not there.is_dir():
            notes.append(f"{base} has no folder {folder.relative_to(root)}")
        before = load_definitions(there, move_path(Path.cwd(), root, files), move_paths(own, root, files))
    names = tuple(sorted({*before.pipelines, *after.pipelines}))
    return RevisedDefinitions(base, compare_revisions(before, after), names, tuple(notes))


def move_path(path: Path, root: Path, files: Path) -> Path:
    """Return the place of a path among a revision's files; the path itself where it has none there."""
    there = files / path.resolve().relative_to(root) if path.resolve().is_relative_to(root) else path
    return there if there.exists() else path


def move_paths(paths: Sequence[str], root: Path, files: Path) -> list[str]:
    """Return the places to import from, with those in a work tree among a revision's files, where it has them."""
    return [str(move_path(Path(each), root, files)) for each in paths]


def load_definitions(folder: Path, beside: Path, path: Sequence[str]) -> RevisionFacts:
    """Load the definitions of a folder by another process, in a folder ``beside``, that imports from ``path``.

    What ends that process is a problem of the definitions.
    """
    with TemporaryDirectory(prefix="seamline-definitions-") as made:
        out = Path(made) / "facts.json"
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", DESCRIBER, str(folder), str(out), json.dumps(list(path))],
                cwd=beside,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LOADED_WITHIN,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return RevisionFacts(problems=(f"the definitions did not load within {LOADED_WITHIN} seconds",))
        if not out.is_file():
            said = [line for line in done.stderr.splitlines() if line.strip()][-1:]
            why = f"exit code {done.returncode}{': ' if said else ''}{''.join(said)}"
            return RevisionFacts(problems=(f"the definitions could not be loaded: {why}",))
        return RevisionFacts.from_json(out.read_text(encoding="utf-8"))
