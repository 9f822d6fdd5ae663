"""Definitions for the DAG processor: their SQL is checked once per change, not at every parse.

Compiling a definition imports a SQL parser, which takes longer than a DAG file may. So the verdict (which
pipelines may run, and every problem) is kept beside the state, under a hash of the definitions and of the
code that validates them.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

from seamline.model.compile import catalog
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.model.sql.tokens import build_statement_error

JUDGED_FOR = 60.0
"""Seconds after which definitions with errors are validated again: what they import may have been repaired."""


@dataclass(frozen=True)
class Verdict:
    """Which pipelines may run, and why others may not."""

    good: tuple[str, ...]
    """Names of pipelines."""
    problems: tuple[DefinitionError, ...]
    """Why the others may not."""

    def to_json(self) -> str:
        """Write it as it is kept."""
        problems = [[p.message, p.hint, p.field, p.file, p.line, p.column] for p in self.problems]
        return json.dumps({"good": self.good, "problems": problems})

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        return cls(
            tuple(row["good"]),
            tuple(
                build_statement_error(message, hint, clause=field, file=file, line=line, column=column)
                for message, hint, field, file, line, column in row["problems"]
            ),
        )


def load_valid_definitions(folder: Path, home: Path) -> tuple[list[Pipeline], tuple[DefinitionError, ...]]:
    """Load the definitions that may run, by name, and every problem; NotFound if there is no folder."""
    verdict = load_cached_verdict(folder, home) if folder.is_dir() else validate_definitions(folder)
    found, wrong = read_declared_pipelines(folder)
    known = {problem.file for problem in verdict.problems}
    since = tuple(problem for problem in wrong if problem.file not in known)
    return [found[name] for name in verdict.good if name in found], verdict.problems + since


def load_cached_verdict(folder: Path, home: Path) -> Verdict:
    """Load the verdict that is cached for these very files, or validate and cache; problems are not cached for long."""
    file = home / "verdicts" / f"{hash_definitions(folder)}.json"
    try:
        verdict = Verdict.from_json(file.read_text())
        if not verdict.problems or 0 <= time.time() - file.stat().st_mtime < JUDGED_FOR:
            return verdict
    except (OSError, ValueError, KeyError):
        pass
    verdict = validate_definitions(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{id(verdict)}.new")
        fresh.write_text(verdict.to_json())
        fresh.replace(file)
    except OSError:
        # A home that cannot be written only means that the next parse checks again.
        pass
    return verdict


def validate_definitions(folder: Path) -> Verdict:
    """Compile every definition."""
    found = catalog.load_catalog(folder)
    return Verdict(tuple(sorted(found.pipelines)), found.problems)


def read_declared_pipelines(folder: Path) -> tuple[dict[str, Pipeline], list[DefinitionError]]:
    """Read what the files declare, of two of a name the first, and why files cannot be run."""
    found: dict[str, Pipeline] = {}
    wrong = []
    for file in catalog.definition_files(folder):
        try:
            for pipeline in catalog.load_definition_file(file):
                found.setdefault(pipeline.name, pipeline)
        except DefinitionError as problem:
            wrong.append(problem.at(file=str(file)))
    return found, wrong


def hash_definitions(folder: Path) -> str:
    """Hash the definitions' bytes and the state of the code that validates them."""
    digest = hashlib.sha256()
    for file in catalog.source_files(folder):
        digest.update(f"{file}\0".encode() + read_bytes_or_errno(file))
    for file in sorted(Path(catalog.__file__).parents[1].rglob("*.py")):
        about = file.stat()
        digest.update(f"{file.name}\0{about.st_size}\0{about.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def read_bytes_or_errno(file: Path) -> bytes:
    """Read a file, or why it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        return f"errno {error.errno}".encode()
