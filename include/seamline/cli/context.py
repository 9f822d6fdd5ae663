"""What every command needs: the catalog, a pipeline's tables, times and keys from text."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamline.model.compile.catalog import Catalog, load_catalog, load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange
from seamline.model.time.intervals import Interval, parse_moment

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout


def load_configured_catalog() -> Catalog:
    """Load the definitions by setting."""
    from seamline.lake.storage.layout import definitions_folder

    return load_catalog(definitions_folder())


def load_configured_pipeline(name: str) -> CompiledPipeline:
    """Load one pipeline by setting."""
    from seamline.lake.storage.layout import definitions_folder

    return load_pipeline(definitions_folder(), name)


def open_pipeline(name: str) -> tuple[CompiledPipeline, Layout]:
    """Find a pipeline and its tables' places; OtherFormat where another release's tables are."""
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.table_format import require_format

    pipeline = load_configured_pipeline(name)
    return pipeline, require_format(locate_tables(pipeline.name))


def parse_range(start: str | None, end: str | None) -> Interval | None:
    """Read a half-open range; both bounds or none."""
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise BadRange("A range needs both bounds.", hint="pass both --from and --to; --to is exclusive.")
    return Interval(parse_moment(start), parse_moment(end))


def interval_of(pipeline: CompiledPipeline, text: str) -> Interval:
    """Read one interval by its start; BadRange where none starts there."""
    start = parse_moment(text)
    [found] = pipeline.grid.within(Interval(start, start + pipeline.grid.length))
    return found


def parse_name_values(
    given: Sequence[str], *, option: str = "--key", example: str = "carrier=UA"
) -> dict[str, str]:
    """Read ``name=value`` arguments of an option; BadRange for a name that is given twice."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise BadRange(
                f"{option}: {each!r} is not in the form NAME=VALUE.", hint=f"for example: {option} {example}."
            )
        if name in found:
            raise BadRange(f"{name!r} is given twice.", hint="give each name one value.")
        found[name] = value
    return found


def current_actor() -> str:
    """Name who asks."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"
