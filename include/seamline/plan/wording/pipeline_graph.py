"""A pipeline as a graph: what is read, the records, what is derived from them, views and sinks, laid out in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from seamline.model.definition.as_of import AsOf
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.joins import Join
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sinks.sink_base import AnySink, Sink
from seamline.plan.spelling import format_quantity
from seamline.plan.wording.source_text import describe_derived, name_source


class NodeKind(StrEnum):
    """What a node stands for."""

    SOURCE = "source"
    RECORDS = "records"
    DERIVED = "derived rows"
    VIEW = "view"
    SINK = "sink"


@dataclass(frozen=True)
class Node:
    """A part of a pipeline."""

    kind: NodeKind
    """What it stands for."""
    name: str
    """Its name in the definition, unique among those of its kind."""
    about: str
    """What the definition says of it."""

    @property
    def id(self) -> tuple[NodeKind, str]:
        """What edges name it by."""
        return self.kind, self.name


Edge = tuple[tuple[NodeKind, str], tuple[NodeKind, str]]
"""From where rows go, and where to."""


Id = tuple[str, str]
"""Of a node; or of a place where an edge passes a column."""


@dataclass(frozen=True)
class Graph:
    """Nodes, edges, and where each node is drawn."""

    nodes: tuple[Node, ...]
    """In the order of the definition."""
    ways: Mapping[Edge, tuple[Id, ...]]
    """Of each edge, what it goes by: its first node, a place in each column that it passes, its last node."""
    columns: Mapping[Id, int]
    """From the left."""
    rows: Mapping[Id, float]
    """From the top; two nodes of a column are at least 1 apart."""


def draw_pipeline(pipeline: Pipeline) -> Graph:
    """Draw a pipeline from what it reads, on the left, to where its answers go."""
    nodes, edges = [], []
    asks = pipeline.asks
    answers = (
        dict(zip((each.name for each in pipeline.sources[-len(asks) :]), asks, strict=True)) if asks else {}
    )
    for source in pipeline.sources:
        records = Node(NodeKind.RECORDS, source.name or "records", describe_records(pipeline, source.name))
        if source.name in answers:
            nodes.append(records)
            edges.append(((NodeKind.DERIVED, answers[source.name].name), records.id))
            continue
        read = Node(NodeKind.SOURCE, ", ".join(source.topics), name_source(source))
        nodes += [read, records]
        edges.append((read.id, records.id))
    derived = {each.name for each in pipeline.derive}
    for each in pipeline.derive:
        node = Node(NodeKind.DERIVED, each.name, ": ".join(describe_derived(each)))
        nodes.append(node)
        edges += [(name_rows(one, derived), node.id) for one in list_inputs(each)]
    for view in pipeline.views:
        node = Node(NodeKind.VIEW, view.name, describe_view(view))
        nodes.append(node)
        edges += [(name_rows(one, derived), node.id) for one in list_counted(pipeline, view)]
    for sink in pipeline.sinks:
        node = Node(NodeKind.SINK, sink.id, describe_sink(pipeline, sink))
        nodes.append(node)
        edges += [(one, node.id) for one in list_sent(pipeline, sink)]
    known = {each.id for each in nodes}
    return lay_out(nodes, [edge for edge in dict.fromkeys(edges) if known.issuperset(edge)])


def describe_sink(pipeline: Pipeline, sink: AnySink) -> str:
    """Say where a sink writes to, and what."""
    what = f"when {sink.when}" if isinstance(sink, Sink) else f"{sink.sends} records"
    return f"{sink.kind.replace('_', ' ')} {sink.name_target(pipeline.name)}, {what}"


def list_sent(pipeline: Pipeline, sink: AnySink) -> list[tuple[NodeKind, str]]:
    """List what a sink sends: a view, or records of all sources, or of those that have the side."""
    if isinstance(sink, Sink):
        return [(NodeKind.VIEW, sink.view)]
    sided = [each for each in pipeline.sources if sink.sends in each.side]
    return [(NodeKind.RECORDS, each.name or "records") for each in sided or pipeline.sources]


def list_inputs(derived: object) -> list[str]:
    """List whose rows derived rows are made of."""
    if isinstance(derived, AsOf):
        return [derived.left, derived.versions]
    if isinstance(derived, Join | CoGroup):
        return [derived.left, derived.right]
    return [str(getattr(derived, "of", ""))]


def list_counted(pipeline: Pipeline, view: View) -> list[str]:
    """List whose rows a view counts: those it names, or those of the one source."""
    if view.of:
        return [view.of] if isinstance(view.of, str) else list(view.of)
    return [each.name for each in pipeline.sources[:1]]


def name_rows(name: str, derived: set[str]) -> tuple[NodeKind, str]:
    """Return the node whose rows are called so; what a function sets aside is called ``NAME.SIDE``."""
    whose = name.partition(".")[0]
    return (NodeKind.DERIVED, whose) if whose in derived else (NodeKind.RECORDS, whose or "records")


def describe_records(pipeline: Pipeline, source: str) -> str:
    """Say what becomes of the records of a source."""
    own = next((each for each in pipeline.sources if each.name == source), pipeline.sources[0])
    of = own if source else pipeline
    said = [
        format_quantity(len(getattr(of, name)), word)
        for name, word in (("rules", "rule"), ("select", "derived column"), ("side", "side"))
        if getattr(of, name, ())
    ]
    if pipeline.lookups:
        said.append(format_quantity(len(pipeline.lookups), "look-up"))
    if where := getattr(of, "where", ""):
        said.append(f"where {where}")
    return ", ".join(said) or "every record that can be read"


def describe_view(view: View) -> str:
    """Say what a view answers."""
    keys = f"by {', '.join(view.keys)}" if view.keys else "without keys"
    return f"{', '.join(view.measures)} {keys}, {view.window}"


def lay_out(nodes: Sequence[Node], edges: Sequence[Edge]) -> Graph:
    """Lay nodes out: a node stands right of all that feed it, and near the middle of what it is connected with.

    Edges that pass a column have a place of their own there, as in the method of Sugiyama and others (1981).
    """
    columns = find_columns(nodes, edges)
    ways: dict[Edge, tuple[Id, ...]] = {}
    for at, (one, other) in enumerate(edges):
        passed: list[Id] = [(f"edge {at}", str(column)) for column in range(columns[one] + 1, columns[other])]
        columns |= {id: columns[one] + 1 + by for by, id in enumerate(passed)}
        ways[one, other] = (one, *passed, other)
    feeders: dict[Id, list[Id]] = {id: [] for id in columns}
    fed: dict[Id, list[Id]] = {id: [] for id in columns}
    for way in ways.values():
        for before, after in pairwise(way):
            feeders[after].append(before)
            fed[before].append(after)
    ordered = sorted(set(columns.values()))
    by_column = {column: [id for id in columns if columns[id] == column] for column in ordered}
    rows = {id: float(at) for ids in by_column.values() for at, id in enumerate(ids)}
    for near, sweep in ((feeders, ordered), (fed, ordered[::-1]), (feeders, ordered)):
        for column in sweep:
            place_column(by_column[column], near, rows)
    first = min(rows.values(), default=0.0)
    return Graph(tuple(nodes), ways, columns, {id: round(row - first, 2) for id, row in rows.items()})


def find_columns(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[Id, int]:
    """Find the column of each node: right of all that feed it, views in one, and sinks in the last."""
    columns: dict[Id, int] = {each.id: 0 for each in nodes}
    # As many passes as there are nodes suffice, whatever their order; more would mean a circle.
    for _ in nodes:
        for one, other in edges:
            columns[other] = max(columns[other], columns[one] + 1)
    last = max((columns[each.id] for each in nodes if each.kind is not NodeKind.SINK), default=0)
    for each in nodes:
        if each.kind is NodeKind.VIEW:
            columns[each.id] = last
        elif each.kind is NodeKind.SINK:
            columns[each.id] = last + 1
    return columns


def place_column(ids: Sequence[Id], near: Mapping[Id, Sequence[Id]], rows: dict[Id, float]) -> None:
    """Move what stands in a column to the middle of what it is near to, each at least 1 below the one before."""
    wanted = {id: sum(rows[one] for one in near[id]) / len(near[id]) if near[id] else rows[id] for id in ids}
    ordered = sorted(ids, key=lambda id: (wanted[id], rows[id]))
    spread = spread_out([wanted[id] for id in ordered])
    rows |= dict(zip(ordered, spread, strict=True))


def spread_out(wanted: Sequence[float]) -> list[float]:
    """Return ascending places, at least 1 apart, whose sum of squared distances from the wanted ones is least.

    Places that come too near are merged into a block about their mean: the pool-adjacent-violators algorithm of
    isotonic regression (Barlow and others, 1972).
    """
    blocks: list[tuple[float, int]] = []
    for at, place in enumerate(wanted):
        mean, size = place - at, 1
        while blocks and blocks[-1][0] > mean:
            other, many = blocks.pop()
            mean, size = (mean * size + other * many) / (size + many), size + many
        blocks.append((mean, size))
    flat = [mean for mean, size in blocks for _ in range(size)]
    return [place + at for at, place in enumerate(flat)]
