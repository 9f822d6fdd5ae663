"""The sinks, and the range of windows, that a command names."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from seamline.model.errors import BadRange, NotFound
from seamline.model.time.intervals import parse_moment

if TYPE_CHECKING:
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.model.definition.sinks.sink_base import AnySink


def require_sinks(compiled: CompiledPipeline) -> None:
    """Raise NotFound for a pipeline without sinks."""
    if not compiled.definition.sinks:
        raise NotFound(f"{compiled.name} has no sinks.", hint="declare one: docs/sinks.md.")


def find_sink(compiled: CompiledPipeline, name: str) -> AnySink:
    """Find a sink by its name; NotFound with the names that there are."""
    require_sinks(compiled)
    for each in compiled.definition.sinks:
        if each.id == name:
            return each
    names = ", ".join(each.id for each in compiled.definition.sinks)
    raise NotFound(f"{compiled.name} has no sink {name!r}.", hint=f"it has {names}.")


def parse_starts(start: str | None, end: str | None) -> tuple[datetime | None, datetime | None]:
    """Read the bounds between which windows start; BadRange where none can."""
    first, last = (None if each is None else parse_moment(each) for each in (start, end))
    if first is not None and last is not None and last <= first:
        raise BadRange(f"No window starts in {start} to {end}.", hint="--to is after --from, and exclusive.")
    return first, last
