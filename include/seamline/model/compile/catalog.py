"""Every definition of a folder, and every problem; a broken one hides no other."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from inspect import signature
from pathlib import Path
from types import CodeType, FunctionType

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, compile_with_problems
from seamline.model.compile.stored_definition import CLASSES
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError, NotFound, SeamlineError
from seamline.model.measures import language
from seamline.model.recent import Recent

CALLED = re.compile(r"(\w+?)(?:\.__init__)?\(\) ")
"""What Python's message names that was called with wrong arguments."""
WORDS: Mapping[str, Callable[..., object]] = {
    **CLASSES,
    **{name: each for name, each in vars(language).items() if isinstance(each, FunctionType)},
}
"""What a definition is written with."""
SQL = ".sql"
"""What the names of files end with that declare a pipeline in SQL."""
CIRCLE = (
    "these files import each other: move what both need into a third (_shared.py), which imports neither."
)


@dataclass(frozen=True)
class Catalog:
    """What a folder of definitions contains."""

    pipelines: Mapping[str, CompiledPipeline] = field(default_factory=dict)
    """The pipelines that may run, by name."""
    problems: tuple[DefinitionError, ...] = ()
    """What keeps the others from running."""

    def pipeline(self, name: str) -> CompiledPipeline:
        """Find a pipeline; NotFound, or the problem that hides it."""
        if name in self.pipelines:
            return self.pipelines[name]
        for problem in self.problems:
            if Path(problem.file).stem == name:
                raise problem
        raise NotFound(
            f"There is no pipeline {name!r}.",
            hint=f"available: {', '.join(sorted(self.pipelines)) or 'none'}.",
        )

    def view(self, qualified: str) -> tuple[CompiledPipeline, CompiledView]:
        """Find a view by PIPELINE.VIEW."""
        name, _, view_name = qualified.partition(".")
        pipeline = self.pipeline(name)
        view = pipeline.view(view_name)
        if view is None:
            names = ", ".join(f"{name}.{view.name}" for view in pipeline.views)
            raise NotFound(f"There is no view {qualified!r}.", hint=f"available: {names}.")
        return pipeline, view


def load_catalog(folder: Path) -> Catalog:
    """Read every ``*.py`` and ``*.sql`` of a folder (not ``_*``) and compile the pipelines found in it."""
    if not folder.is_dir():
        raise NotFound(f"The folder of definitions {folder} does not exist.", hint="set SEAMLINE_PIPELINES.")
    pipelines: dict[str, CompiledPipeline] = {}
    problems: list[DefinitionError] = []
    for file in definition_files(folder):
        try:
            found = load_definition_file(file)
        except DefinitionError as problem:
            problems.append(problem.at(file=str(file)))
            continue
        for pipeline in found:
            try:
                compiled, wrong = compile_definition(pipeline)
            except DefinitionError as problem:
                problems.append(problem)
                continue
            problems.extend(wrong)
            if compiled is None:
                continue
            if pipeline.name in pipelines:
                other = pipelines[pipeline.name].definition.origin
                problems.append(
                    DefinitionError(
                        f"Pipeline {pipeline.name!r} is also declared in {other.file}:{other.line}.",
                        hint="rename one of them.",
                        field="name",
                        file=pipeline.origin.file,
                        line=pipeline.origin.line,
                    )
                )
                continue
            pipelines[pipeline.name] = compiled
    return Catalog(pipelines, tuple(problems))


def load_pipeline(folder: Path, name: str) -> CompiledPipeline:
    """Load one pipeline as ``load_catalog`` has it; NotFound, or the problem that hides it.

    Only files that contain its name are run, in order; if none of those declares it, all are, since a file may put a
    name together. Of two declarations of a name, which is a problem that the catalog has, that one is taken of which
    the file contains the name.
    """
    for pipeline in find_declarations(folder, name):
        try:
            compiled, _ = compile_definition(pipeline)
        except DefinitionError:
            continue
        if compiled is not None:
            return compiled
    return load_catalog(folder).pipeline(name)


def find_declarations(folder: Path, name: str) -> Iterator[Pipeline]:
    """Run the files that contain a pipeline's name, in order, and yield what they declare under it."""
    for file in definition_files(folder):
        if not has_text(file, name):
            continue
        try:
            found = load_definition_file(file)
        except DefinitionError:
            continue
        yield from (each for each in found if each.name == name)


def has_text(file: Path, text: str) -> bool:
    """Return whether a file contains a text; False if it cannot be read."""
    try:
        return text.encode() in file.read_bytes()
    except OSError:
        return False


def source_files(folder: Path) -> list[Path]:
    """List what stands in a folder of definitions, by name; what starts with a dot is an editor's, or a copy's."""
    found = [file for kind in (".py", SQL) for file in folder.glob(f"*{kind}")]
    return sorted(file for file in found if not file.name.startswith("."))


def definition_files(folder: Path) -> list[Path]:
    """List the files that declare pipelines; those that start with ``_`` are there to be imported."""
    return [file for file in source_files(folder) if not file.name.startswith("_")]


def compile_definition(pipeline: Pipeline) -> tuple[CompiledPipeline | None, list[DefinitionError]]:
    """Compile a definition, or list every problem it has; DefinitionError for whatever Python raises of a setting."""
    try:
        compiled, problems = compile_with_problems(pipeline)
        return compiled, [pipeline.origin.locate(each) for each in problems]
    except SeamlineError:
        raise
    except Exception as error:
        raise DefinitionError(
            f"{type(error).__name__}: {error}.",
            hint="check that every setting has the type that it takes.",
            file=pipeline.origin.file,
            line=pipeline.origin.line,
        ) from error


BELIEVED_FOR = 60.0
"""Seconds after which a folder is loaded again of which any file was wrong: what it imports may be there by now."""


@dataclass(frozen=True)
class LoadedDefinition:
    """What was found in a folder when its files looked so."""

    files: tuple[tuple[str, int, int, int], ...]
    """Path of each file, its inode, its modification time in nanoseconds, and its size in bytes."""
    found: Catalog
    """The pipelines and problems."""
    at: float
    """Seconds of the monotonic clock."""

    @property
    def lasts(self) -> bool:
        """Return whether it stays valid while the files are unchanged."""
        return not self.found.problems or time.monotonic() - self.at < BELIEVED_FOR


_known: Recent[Path, LoadedDefinition] = Recent(16)


def load_cached_catalog(folder: Path) -> Catalog:
    """Load a folder, and not again until one of its files, those that start with ``_`` included, is another.

    One with problems is loaded again after a while.
    """
    try:
        files = list_file_identities(folder)
    except FileNotFoundError:
        return load_catalog(folder)
    held = _known.get(folder)
    if held is None or held.files != files or not held.lasts:
        held = _known[folder] = LoadedDefinition(files, load_catalog(folder), time.monotonic())
    return held.found


def list_file_identities(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Distinguish what stands in a folder of definitions from others in its place, as ``LoadedDefinition`` has it."""
    with os.scandir(folder) as found:
        files = [each for each in found if each.name.endswith((".py", SQL)) and not each.name.startswith(".")]
        stats = sorted((each.name, each.stat()) for each in files)
    return tuple((name, each.st_ino, each.st_mtime_ns, each.st_size) for name, each in stats)


class Source(SourceFileLoader):
    """Runs a file as it is now: bytecode is kept by second and size, and an edit may change neither."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def explain_broken_file(error: BaseException) -> str:
    """Say what to do about what a definition file raises: of an argument that is none, which ones there are."""
    if "circular import" in str(error):
        return CIRCLE
    called = CALLED.match(str(error)) if isinstance(error, TypeError) else None
    if called and called[1] in WORDS:
        names = [name for name in signature(WORDS[called[1]]).parameters if name != "origin"]
        return f"{called[1]} takes {', '.join(names)}."
    return "the file must be importable on its own."


def load_definition_file(file: Path) -> list[Pipeline]:
    """Run a definition file, or read one in SQL, and list its pipelines; DefinitionError with the line that fails."""
    if file.suffix == SQL:
        from seamline.model.sql.pipeline_file import pipeline_from_sql

        return [pipeline_from_sql(file)]
    name = f"seamline_definitions_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=Source(name, str(file)))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise DefinitionError(
            f"{error.msg}.", hint="fix the Python of this file.", file=str(file), line=error.lineno or 0
        ) from None
    except (Exception, SystemExit) as error:
        lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == str(file)]
        line = (lines or [0])[-1] or 0
        if isinstance(error, DefinitionError):
            raise error.at(file=str(file), line=line) from None
        raise DefinitionError(
            f"{type(error).__name__}: {error}.", hint=explain_broken_file(error), file=str(file), line=line
        ) from error
    seen = [value for value in vars(module).values() if isinstance(value, Pipeline)]
    if not seen:
        raise DefinitionError(
            "No Pipeline is declared here.",
            hint="declare one, or start the file's name with _ to leave it out.",
        )
    return list({id(pipeline): pipeline for pipeline in seen}.values())
