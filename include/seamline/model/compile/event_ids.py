"""Event ids in SQL: what together identifies an event, of whichever source it is."""

from __future__ import annotations

from collections.abc import Callable

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SOURCE


def list_own_ids(pipeline: CompiledPipeline) -> dict[str, str]:
    """List the columns of the event id of a pipeline's only source, by names that no column has."""
    return {f"_id_{number}": name for number, name in enumerate(pipeline.source.event_id)}


def list_id_expressions(pipeline: CompiledPipeline, quote: Callable[[str], str]) -> list[str]:
    """Write the expressions whose values are equal for two rows of one event, in the SQL of both engines.

    ``quote`` writes a column's name. A column counts for the rows of those sources whose id it is part of.
    """
    sources = pipeline.definition.sources
    found = []
    for name in pipeline.event_id:
        owners = [source.name for source in sources if name in source.event_id]
        if name == SOURCE or len(owners) == len(sources):
            found.append(quote(name))
        else:
            names = ", ".join(f"'{owner}'" for owner in owners)
            found.append(f"CASE WHEN {quote(SOURCE)} IN ({names}) THEN {quote(name)} END")
    return found
