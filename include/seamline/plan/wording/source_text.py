"""Sentences about what a pipeline reads: its topics, how their records are read, event times, and what is joined."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.model.compile.defaults import describe_time_bounds
from seamline.model.compile.sources import has_several, list_narrowed
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.asks import Ask
from seamline.model.definition.changes import Changelog
from seamline.model.definition.folds import Folded
from seamline.model.definition.formats import format_of
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.joins import Join, Open
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.processes import Process
from seamline.model.definition.sources import DeltaSource, Source
from seamline.model.protocol.clusters.failovers import Failover, find_unregistered
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import format_utc_instant, parse_duration
from seamline.plan.spelling import format_quantity


def list_time_bounds(pipeline: Pipeline) -> list[str]:
    """List which bounds of event times are in force, a line for each of several sources."""
    if not has_several(pipeline):
        return [describe_time_bounds(pipeline)]
    return [f"{each.only_source.name}: {describe_time_bounds(each)}" for each in list_narrowed(pipeline)]


def list_source_lines(pipeline: Pipeline) -> list[str]:
    """List what is read by which connection, the bounds of each source, and joins; several sources by name."""
    by = f" by connection {pipeline.connection}" if pipeline.connection else ""
    if not has_several(pipeline):
        return [f"{name_source(pipeline.only_source)}{by}", describe_time_bounds(pipeline)]
    found = [f"{format_quantity(len(pipeline.sources), 'source')}{by}"]
    for each in list_narrowed(pipeline):
        found += [
            f"source {each.only_source.name}: {describe_source(each.only_source)}",
            f"  {describe_time_bounds(each)}",
        ]
    return [*found, *(": ".join(each) for each in list_derived_facts(pipeline))]


def describe_failovers(failovers: Sequence[Failover], ledger: Sequence[Epoch]) -> list[str]:
    """Say which connection is in force by a failover, whatever the definition has; nothing if there was none."""
    if not failovers:
        return []
    last = failovers[-1]
    since = f"since the failover of {format_utc_instant(last.at)} from {last.left} by {last.actor}"
    pending = "; the next start begins it" if find_unregistered(failovers, ledger) else ""
    return [f"connection {last.connection} is in force {since}{pending}"]


def describe_source(source: Source) -> str:
    """Say what a source reads, and what its event time is."""
    if isinstance(source, DeltaSource):
        return f"{name_source(source)}, event time {source.event_time}"
    topics = f"topic{'s' * (len(source.topics) > 1)} {', '.join(source.topics)}"
    return f"{topics} as {format_of(source.format).kind}, event time {source.event_time}"


def name_source(source: Source) -> str:
    """Name the topics, or the table, of a source."""
    if isinstance(source, DeltaSource):
        return f"Delta table {source.table}"
    return f"topic {', '.join(source.topics)}"


def describe_join(join: Join) -> str:
    """Say which rows a join pairs: equal columns, then how far from its left row the right one may be."""
    left, right = ("left", "right") if join.left == join.right else (join.left, join.right)
    keys = [f"{left}.{one} = {right}.{other}" for one, other in join.on.items()]
    if join.same:
        near = f"both in one window, {join.same}"
    else:
        sides = [(join.before, "before"), (join.after, "after")]
        near = " and ".join(f"{describe_bound(bound)} {side}" for bound, side in sides if is_wide(bound))
        near = f"{right} {near} {left}" if near else "at the same instant"
        if any(isinstance(bound, Open) and not is_wide(bound) for bound, _ in sides):
            near += ", not at the same instant"
    itself = [f"{join.left} with itself"] if join.left == join.right else []
    return ", ".join([*itself, *keys, near, *([f"where {join.where}"] if join.where else [])])


def describe_as_of(joined: AsOf) -> str:
    """Say which versions left rows have, and how old these may be."""
    left, right = ("left", "right") if joined.left == joined.versions else (joined.left, joined.versions)
    keys = [f"{left}.{one} = {right}.{other}" for one, other in joined.on.items()]
    where = [
        f"{side} where {text}"
        for side, text in ((left, joined.left_where), (right, joined.versions_where))
        if text
    ]
    latest = f"each row of {joined.left} with its latest of {joined.versions}"
    return ", ".join([latest, *keys, f"at most {joined.at_most} older", *where])


def is_wide(bound: str | Open) -> bool:
    """Return whether a bound leaves any time between two rows."""
    return bool(parse_duration(bound.duration if isinstance(bound, Open) else bound, zero=True))


def describe_bound(bound: str | Open) -> str:
    """Write how far away a row may be."""
    return f"less than {bound.duration}" if isinstance(bound, Open) else f"up to {bound}"


def list_source_facts(pipeline: Pipeline) -> list[tuple[str, str]]:
    """List what is read, source by source, with its bounds, then joins, for a page; one source alone has no name."""
    return [
        *([("connection", pipeline.connection)] if pipeline.connection else []),
        *(
            (each.only_source.name or "source", f"{describe_source(each.only_source)}; {bounds}")
            for each in list_narrowed(pipeline)
            for bounds in [describe_time_bounds(each)]
        ),
        *list_derived_facts(pipeline),
    ]


def list_derived_facts(pipeline: Pipeline) -> list[tuple[str, str]]:
    """List the rows that are derived by name, with what they are made of."""
    return [describe_derived(each) for each in pipeline.derive]


def describe_derived(derived: Join | AsOf | Ask | Folded | Changelog) -> tuple[str, str]:
    """Name derived rows, and say what they are made of."""
    if isinstance(derived, Ask):
        return f"ask {derived.name}", describe_ask(derived)
    if isinstance(derived, Changelog):
        return f"changelog {derived.name}", f"the table after all changes of {derived.of}"
    if isinstance(derived, CoGroup):
        return f"co-group {derived.name}", describe_group(derived)
    if isinstance(derived, Pattern):
        return f"pattern {derived.name}", describe_pattern(derived)
    if isinstance(derived, Process):
        return f"process {derived.name}", describe_process(derived)
    if isinstance(derived, AsOf):
        return f"as-of join {derived.name}", describe_as_of(derived)
    return f"join {derived.name}", describe_join(derived)


def describe_process(process: Process) -> str:
    """Say which function is given which rows, and how long it keeps a state."""
    where = f" where {process.where}" if process.where else ""
    forget = f", forgotten after {process.forget} without a row" if process.forget else ""
    return (
        f"{process.by} folds the rows of {process.of}{where} by {', '.join(process.keys)}, "
        f"{describe_begin(process)}{forget}{describe_version(process)}"
    )


def describe_pattern(pattern: Pattern) -> str:
    """Say which steps are looked for in which rows, and what a match shows."""
    where = f" where {pattern.where}" if pattern.where else ""
    define = "; ".join(f"{name}: {text}" for name, text in pattern.define.items())
    select = ", ".join(f"{text} AS {name}" for name, text in pattern.select.items())
    skip = f", on {pattern.skip}" if pattern.skip != Pattern.skip else ""
    return (
        f"{pattern.steps} ({define}) within {pattern.within}{skip}, in the rows of {pattern.of}{where} by "
        f"{', '.join(pattern.keys)}, {describe_begin(pattern)}: {select}{describe_version(pattern)}"
    )


def describe_group(group: CoGroup) -> str:
    """Say which class is given which rows."""
    on = " AND ".join(f"{group.left}.{left} = {group.right}.{right}" for left, right in group.on.items())
    return (
        f"{group.by} is given the rows of {group.left} and {group.right} where {on}, "
        f"by windows of {group.window.size}{describe_version(group)}"
    )


def describe_begin(folded: Process | Pattern) -> str:
    """Say how often a fold begins anew."""
    return f"anew {f'every {folded.begin}' if folded.begin else 'in each interval'}"


def describe_version(folded: Folded) -> str:
    """Say what the author calls the meaning of a fold; empty if nothing."""
    return f", version {folded.version}" if folded.version else ""


def describe_ask(ask: Ask) -> str:
    """Say about which rows another system is asked, and what for."""
    where = f" where {ask.when}" if ask.when else ""
    version = f", version {ask.version}" if ask.version else ""
    return f"{', '.join(ask.columns)} of each row of {ask.of}{where} by {ask.by}{version}"
