"""Whether the functions of a pipeline keep their laws: tried on random rows, never where Airflow reads definitions."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.long_calls import break_off_long_calls
from seamline.model.errors import DefinitionError
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.functions.laws import find_broken_law


def require_lawful(process: CompiledProcess) -> None:
    """Require that a function keeps its laws on random rows of its columns; DefinitionError with the rows."""
    try:
        with break_off_long_calls(process) as own:
            said = find_broken_law(own.fold, own.columns, own.size)
    except FunctionUnusable as error:
        raise DefinitionError(
            f"{error}.", hint="it was given random rows: mend it, or raise timeout= or memory=."
        ) from error
    if said:
        raise DefinitionError(
            said, hint="keep everything the function needs in the state, and change nothing else."
        )


def list_broken_laws(pipeline: CompiledPipeline) -> Iterator[DefinitionError]:
    """List the laws that functions of a pipeline break, each with the place of its process."""
    declared = {each.name: each.origin for each in pipeline.definition.derive}
    processes = {view.process.name: view.process for view in pipeline.views if view.process}
    for name, process in processes.items():
        try:
            require_lawful(process)
        except DefinitionError as error:
            yield error.at(field=f"derive[{name}].by", file=declared[name].file, line=declared[name].line)


def require_all_lawful(pipeline: CompiledPipeline) -> None:
    """Raise the first of ``list_broken_laws``."""
    for error in list_broken_laws(pipeline):
        raise error
