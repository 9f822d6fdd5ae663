"""Whether the functions of a pipeline keep their laws: tried on random rows, never where Airflow reads definitions."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.long_calls import break_off_long_calls
from seamline.model.definition.windows import CountWindow
from seamline.model.errors import DefinitionError
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.functions.laws import find_broken_law


def require_lawful(process: CompiledProcess) -> None:
    """Require that a function keeps its laws on random rows of its columns; DefinitionError with the rows."""
    try:
        with break_off_long_calls(process) as own:
            said = find_broken_law(own.fold, own.columns, own.size)
    except FunctionUnusable as error:
        hint = "it was given random rows: mend it, or raise timeout= or memory=."
        if process.function.user is None:
            hint = "let it keep fewer rows, or shorter columns."
        raise DefinitionError(f"{error}.", hint=hint) from error
    if said:
        raise DefinitionError(
            said, hint="keep everything the function needs in the state, and change nothing else."
        )


def list_broken_laws(pipeline: CompiledPipeline) -> Iterator[DefinitionError]:
    """List the laws that functions of a pipeline break, each with the place of its process."""
    views = {f"views[{each.name}].window": each.origin for each in pipeline.definition.views}
    declared = {f"derive[{each.name}].by": each.origin for each in pipeline.definition.derive}
    processes = {view.process.id: view for view in pipeline.views if view.process}
    for view in processes.values():
        assert view.process
        place = f"derive[{view.process.name}].by"
        if isinstance(view.window, CountWindow):
            place = f"views[{view.name}].window"
        origin = {**views, **declared}.get(place, pipeline.definition.origin)
        try:
            require_lawful(view.process)
        except DefinitionError as error:
            yield error.at(field=place, file=origin.file, line=origin.line)


def require_all_lawful(pipeline: CompiledPipeline) -> None:
    """Raise the first of ``list_broken_laws``."""
    for error in list_broken_laws(pipeline):
        raise error
