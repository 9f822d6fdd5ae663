"""The deadline of fresh answers: whoever wants to know is notified once of each overdue interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from seamline.model.errors import DefinitionError
from seamline.model.time.intervals import Interval, parse_duration
from seamline.orchestration.store_connection import with_store_settings
from seamline.runtime.user_answers import await_answer

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.lake.store.locations import Location
    from seamline.model.compile.compiled_pipeline import CompiledPipeline


def missed(name: str, context: Any = None) -> None:
    """Answer a run's deadline that has passed: it may be called twice, and notifies once."""
    notify_overdue(name)


@with_store_settings
def notify_overdue(name: str) -> list[Interval]:
    """Do ``tell_overdue`` for a pipeline by its name."""
    from seamline.orchestration.tasks import open_compiled_pipeline

    return tell_overdue(*open_compiled_pipeline(name))


def tell_overdue(pipeline: CompiledPipeline, layout: Layout) -> list[Interval]:
    """Look what is overdue, say it, and call the definition's ``on_late`` for what it was not called for yet."""
    from seamline.lake.publish.derived_changes import find_reach_ahead
    from seamline.lake.publish.planning import read_spanning_views
    from seamline.lake.status.marks import locate_marks
    from seamline.lake.tables.manifest_table import manifest_of
    from seamline.lake.tables.reprocessed import read_reprocessed_log
    from seamline.plan.stream.overdue_intervals import list_overdue_intervals

    within, now = parse_duration(pipeline.definition.batch.fresh_within), datetime.now(UTC)
    found = list_overdue_intervals(
        read_reprocessed_log(pipeline, layout),
        manifest_of(layout),
        pipeline.grid,
        within=within,
        now=now,
        ahead=find_reach_ahead(pipeline, layout),
        spanning=read_spanning_views(pipeline, layout),
    )
    for interval in found:
        print(f"{pipeline.name} {interval} could be published more than {within} ago and is not")
    if path := pipeline.definition.on_late:
        call = function_of(path)
        alert_each_once(
            locate_marks(layout, "late"),
            found,
            lambda interval: await_answer(call(pipeline=pipeline.name, interval=str(interval))),
        )
    return found


def alert_each_once(
    folder: Location, intervals: Iterable[Interval], tell: Callable[[Interval], object]
) -> None:
    """Notify of each interval that has no mark in the folder; what fails is retried next time."""
    from seamline.lake.store.shared_objects import claim_place

    for interval in intervals:
        mark = folder / interval.id.replace(":", "")
        if not claim_place(mark):
            continue
        try:
            tell(interval)
        except BaseException:
            mark.unlink()
            raise


def function_of(path: str, field: str = "on_late") -> Callable[..., Any]:
    """Find a user's function, or what else can be called, by its dotted path; DefinitionError if there is none."""
    module, _, name = path.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DefinitionError(
            f"{path!r} cannot be imported: {error}.",
            hint='write "module.function" of a module that the tasks of Airflow can import.',
            field=field,
        ) from error
    return found
