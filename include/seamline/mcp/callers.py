"""Who calls a tool: what they may read, and what an answer to them may cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from seamline.lake.storage.layout import Layout, definitions_folder, locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange, NotFound

T = TypeVar("T")


class WorksOut(Protocol):
    """Works out an answer within the time that there is; TooSlow."""

    def __call__(self, make: Callable[[], T], /) -> T: ...


@dataclass(frozen=True)
class Caller:
    """One who calls tools."""

    may_read: Callable[[str], bool]
    """Whether they may read a pipeline, by its name; asked again for each call."""
    memory: int
    """Bytes that an answer may take."""
    work_out: WorksOut
    """Works out an answer for them."""

    def list_pipelines(self) -> list[CompiledPipeline]:
        """List the pipelines that they may read, by name."""
        found = load_cached_catalog(definitions_folder()).pipelines
        return [found[name] for name in sorted(found) if self.may_read(name)]

    def require_readable(self, name: str) -> None:
        """Refuse a pipeline that they may not read, as one that is not there: NotFound."""
        if not self.may_read(name):
            known = ", ".join(each.name for each in self.list_pipelines())
            raise NotFound(f"There is no pipeline {name!r}.", hint=f"available: {known or 'none'}.")

    def open_pipeline(self, name: str) -> tuple[CompiledPipeline, Layout]:
        """Find a pipeline that they may read, and its tables; NotFound."""
        self.require_readable(name)
        pipeline = load_cached_catalog(definitions_folder()).pipeline(name)
        return pipeline, require_format(locate_tables(pipeline.name))


def refuse_work(make: Callable[[], T], /) -> T:
    """Work out nothing."""
    raise NotFound("Nobody asks.", hint="log in.")


NOBODY = Caller(may_read=lambda _: False, memory=0, work_out=refuse_work)
"""Who may read nothing."""


def split_view_name(view: str) -> tuple[str, str]:
    """Split ``PIPELINE.VIEW``; BadRange for anything else."""
    pipeline, dot, name = view.partition(".")
    if not (pipeline and dot and name):
        raise BadRange(f"{view!r} is not a view.", hint="name it PIPELINE.VIEW, as list_views does.")
    return pipeline, name
