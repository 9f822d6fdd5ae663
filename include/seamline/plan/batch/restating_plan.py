"""Whether a look-up can be restated, and the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.evolution import is_compatible_version
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.errors import BadRange, NotFound
from seamline.model.protocol.condensed import first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Statement
from seamline.model.protocol.restated_views import count_named_restatements
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import Reaching, find_spanning_views, list_reaching_intervals
from seamline.plan.batch.batch_plan import last_edge
from seamline.plan.batch.interval_arrivals import Arrivals, find_first_arrival


def find_joined_lookup(pipeline: CompiledPipeline, name: str) -> LookupJoin:
    """Find a look-up that rows were made with; NotFound for no look-up, BadRange for one that decorates."""
    for join in pipeline.lookups:
        if join.name == name:
            return join
    joined = [each.name for each in pipeline.lookups]
    names = list(dict.fromkeys([*joined, *(each.name for each in pipeline.definition.lookups)]))
    if name not in names:
        raise NotFound(
            f"{pipeline.name} has no look-up {name!r}.",
            hint=f"it has {', '.join(names)}." if names else "its definition declares none.",
        )
    raise BadRange(
        f"Look-up {name} only decorates: no row has its columns, and its newest version is always shown.",
        hint="correct its table; the serving table follows at its next refresh.",
    )


def require_closed(
    pipeline: CompiledPipeline, arrivals: Arrivals, edge: Epoch, name: str, span: Interval
) -> None:
    """Raise BadRange where rows are joined with those of ``span`` in an interval that is open.

    Their views wait for its build (rule 22), which is made once it has closed.
    """
    if pipeline.definition.batch.provisional:
        return
    ahead = max((view.after for view in pipeline.views), default=timedelta(0))
    spanning = find_spanning_views(pipeline.grid, pipeline.views)
    for view in pipeline.views:
        if view.derived is None or name not in view.derived.lookups:
            continue
        for interval in list_reaching_intervals(pipeline.grid, span, view):
            closed = edge.watermark is not None and edge.watermark >= interval.end + ahead
            has = may_show_rows(arrivals, pipeline.grid, interval, spanning.get(view.id), edge.watermark)
            if has and not closed:
                raise BadRange(
                    f"Rows of {span} are joined in {interval}, which is open: {view.name} would stand still until it "
                    "has closed and is built.",
                    hint="restate what has closed now (`seamline plan` names what is open), and the rest later.",
                )


def may_show_rows(
    arrivals: Arrivals, grid: Grid, interval: Interval, view: Reaching | None, mark: datetime | None
) -> bool:
    """Return whether a view may have shown rows in an interval by a watermark.

    ``view`` is None for one that has rows where there are accepted ones; others have had timers fire up to there.
    """
    if view is None or arrivals.total(interval.id):
        return bool(arrivals.total(interval.id))
    passed = mark is not None and interval.start <= mark
    return passed and find_first_arrival(arrivals, grid, interval, view) > NOTHING


def first_uses(epochs: Sequence[Epoch], name: str, record_version: str) -> Mapping[str, int]:
    """Return the first epoch that names each version of a look-up, among those whose rows fit."""
    found: dict[str, int] = {}
    for epoch in epochs:
        if name in epoch.lookups and is_compatible_version(epoch.record_version, record_version):
            found.setdefault(epoch.lookups[name], first_of(epoch))
    return found


def plan_restatement(
    pipeline: CompiledPipeline,
    epochs: Sequence[Epoch],
    name: str,
    span: Interval,
    *,
    version: str,
    newest: str,
    actor: str,
    reason: str,
    now: datetime,
) -> Restatement:
    """Decide that rows of ``span`` are made with a version, that of the table as it is (``newest``) if none is said.

    It applies up to the newest edge. Raises BadRange where an interval is cut in two, where nothing of the span was
    read by then, or where the version was first used after it; NotFound for a version that is neither ``newest``
    nor was ever used.
    """
    intervals = list(pipeline.grid.within(span))
    edge = last_edge(epochs)
    arrivals = Arrivals(epochs, until=edge.number if edge else -1)
    if edge is None or not any(arrivals.rows(each.id, until=edge.number) for each in intervals):
        far = f"up to epoch {edge.number}, the newest edge" if edge else "yet: the log has no edge"
        raise BadRange(
            f"Nothing of {span} was read {far}.",
            hint=f"`seamline lookups {pipeline.name}` lists intervals that have rows.",
        )
    wanted, uses = version or newest, first_uses(epochs, name, pipeline.record_version)
    if wanted != newest and wanted not in uses:
        raise NotFound(
            f"No epoch has used version {wanted} of {name}, and its table has version {newest}.",
            hint=f"`seamline lookups {pipeline.name}` lists the versions.",
        )
    require_closed(pipeline, arrivals, edge, name, span)
    if uses.get(wanted, edge.number) > edge.number:
        raise BadRange(
            f"Version {wanted} of {name} was first used by epoch {uses[wanted]}, and the newest edge is "
            f"{edge.number}: what was read in between would stay as it is.",
            hint="wait for the next edge (edge_every=), then restate.",
        )
    used = uses.get(wanted, -1) if find_joined_lookup(pipeline, name).of else -1
    return Restatement(name, wanted, span, edge.number, actor, reason, now, used)


def list_unbuilt_intervals(
    view: CompiledView,
    grid: Grid,
    decisions: Sequence[Restatement],
    find_published: Callable[[str], Statement | None],
    log: Sequence[Epoch],
    naming: Epoch,
) -> list[str]:
    """List the intervals, in order, that a view waits for before it takes the epoch that names new decisions.

    Each had rows by then, in reach of a decision, and nothing is published of it that was made with them;
    ``find_published`` takes its id. ``log`` is as the view's record version has it, as it is for a plan: what has no
    rows now is never built.
    """
    before = first_of(naming) - 1
    new = decisions[count_named_restatements(log, before) : naming.restated]
    arrivals, spanning = Arrivals(log, until=before), find_spanning_views(grid, [view])
    mark = max((each.watermark for each in log if first_of(each) <= before and each.watermark), default=None)
    found = set()
    for at, decision in enumerate(new, naming.restated - len(new)):
        if view.derived is None or decision.lookup not in view.derived.lookups:
            continue
        for interval in list_reaching_intervals(grid, decision.span, view):
            if not may_show_rows(arrivals, grid, interval, spanning.get(view.id), mark):
                continue
            published = find_published(interval.id)
            if published is None or published.restated <= at:
                found.add(interval.id)
    return sorted(found)
