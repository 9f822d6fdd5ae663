"""The page of a pipeline's graph: each part with how it does, and the way to its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.plan.spelling import format_duration
from seamline.plan.stream.observation import Observation
from seamline.plan.wording.observation_text import FINE
from seamline.plan.wording.pipeline_graph import Graph, Id, Node, NodeKind, draw_pipeline
from seamline.serve.trust.interval_shades import Shade
from seamline.serve.trust.published_answers import ViewTrust, read_trust
from seamline.sinks.sink_states import SinkState, read_sink_states
from seamline.supervisor.observe import observe
from seamline.web.access import kafka_env, readers
from seamline.web.glance.shown_ids import tell_page
from seamline.web.glance.table_versions import Memory
from seamline.web.limits import enforce_rate_limit, within_time_limit
from seamline.web.render import count, format_quantity, render_page_response
from seamline.web.requested_pipeline import open_requested_pipeline

RECENT = 60
"""Epochs whose records are counted."""
WIDTH, HEIGHT, APART = 216, 84, 40
"""Of a node, and how far columns are apart, in pixels; rows are ``HEIGHT + 18`` apart."""
LATE = 60.0
"""Seconds after which a sink is called late."""
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)
trusts = Memory(read_trust)
"""What was read of published answers."""


class Health(StrEnum):
    """How a part does, by the name of its colour."""

    GOOD = "good"
    OWING = "dirty"
    BAD = "bad"
    UNKNOWN = "open"


HEALTH_WORDS: Mapping[Health, str] = {
    Health.GOOD: "in order",
    Health.OWING: "owes something",
    Health.BAD: "wrong",
    Health.UNKNOWN: "not known",
}


@dataclass(frozen=True)
class Drawn:
    """A node as it is drawn."""

    node: Node
    """What it stands for."""
    x: int
    """Pixels from the left."""
    y: int
    """Pixels from the top."""
    page: str
    """Its page, below the pipeline's."""
    says: tuple[str, ...]
    """How it does, in a few words a line."""
    health: Health
    """How it does, in a colour."""

    @property
    def word(self) -> str:
        """Return the health in words."""
        return HEALTH_WORDS[self.health]


@dataclass(frozen=True)
class Known:
    """What is known of a pipeline now."""

    seen: Observation
    """Its stream."""
    epochs: Sequence[Epoch]
    """The newest, oldest first."""
    views: Mapping[str, ViewTrust]
    """Its views by name."""
    sinks: Mapping[str, SinkState]
    """Its sinks by name."""


@router.get("/pipelines/{pipeline}/graph", dependencies=[readers])
@within_time_limit
def graph(pipeline: str, request: Request) -> Response:
    """Draw the pipeline's parts, how each does, and where rows go."""
    compiled, layout = open_requested_pipeline(pipeline)
    told = tell_page(compiled, layout, 10)
    made = draw_pipeline(compiled.definition)
    known = look(compiled, layout)
    drawn = [draw_node(each, made, known) for each in made.nodes]
    return render_page_response(
        request,
        "graph.html",
        here="graph",
        description=compiled.definition.description,
        drawn=drawn,
        curves=[draw_curve(way, made) for way in made.ways.values()],
        width=max(each.x for each in drawn) + WIDTH,
        height=max(each.y for each in drawn) + HEIGHT,
        size=(WIDTH, HEIGHT),
        **told,
    )


def look(compiled: CompiledPipeline, layout: Layout) -> Known:
    """Look at a pipeline once."""
    trust = trusts.find(compiled, layout)
    sinks = read_sink_states(compiled, layout, datetime.now(UTC)) if compiled.definition.sinks else None
    epochs = newest_epochs(layout, RECENT)
    return Known(
        observe(compiled.name, layout, compiled, env=kafka_env(compiled)),
        epochs,
        {each.view: each for each in trust.views},
        {each.sink: each for each in sinks.sinks} if sinks else {},
    )


def draw_node(node: Node, graph: Graph, known: Known) -> Drawn:
    """Say how a part does, and where it stands."""
    says, health = TELLERS[node.kind](node, known)
    x, middle = place(node.id, graph)
    return Drawn(node, x, middle - HEIGHT // 2, page_of(node), tuple(says or [node.about]), health)


def page_of(node: Node) -> str:
    """Name the page that has more of a part, below the pipeline's."""
    match node.kind:
        case NodeKind.VIEW:
            return f"views/{node.name}"
        case NodeKind.DERIVED if node.about.startswith("ask "):
            return "questions"
        case NodeKind.SINK:
            return "sinks"
    return "stream"


def tell_source(node: Node, known: Known) -> tuple[list[str], Health]:
    """Say how far behind the reading of topics is."""
    lag = known.seen.lag
    own = [behind for (topic, _), behind in lag.lanes.items() if topic in node.name.split(", ")]
    said = [f"{count(sum(own))} records behind"] if own else []
    if lag.lanes and not own:
        return said, Health.UNKNOWN
    if known.seen.actual not in FINE:
        return [*said, f"stream {known.seen.actual.value}"], Health.BAD
    return said or ["lag is not known"], Health.GOOD if own else Health.UNKNOWN


def tell_records(node: Node, known: Known) -> tuple[list[str], Health]:
    """Say how many records come, and how many of the newest epochs' were refused."""
    rate = known.seen.rows_per_second
    refused = sum(sum(each.refused.values()) for each in known.epochs)
    said = [] if rate is None else [f"{count(round(rate, 1))} rows/s of all sources"]
    if refused:
        said.append(f"{count(refused)} refused lately, of all sources")
    return said, Health.OWING if refused else Health.GOOD if known.epochs else Health.UNKNOWN


def tell_derived(node: Node, known: Known) -> tuple[list[str], Health]:
    """Say how a question does; of other derived rows what they are says enough."""
    asked = (known.seen.asks or {}).get(node.name)
    if asked is None:
        return [], Health.GOOD if known.epochs else Health.UNKNOWN
    said = [f"{format_quantity(asked.waiting, 'row')} waiting", f"{format_quantity(asked.errors, 'error')}"]
    return said, Health.OWING if asked.errors else Health.GOOD


def tell_view(node: Node, known: Known) -> tuple[list[str], Health]:
    """Say up to when a view is certified, and what it owes."""
    trust = known.views[node.name]
    if not any(trust.shades.values()):
        return ["no rows yet"], Health.UNKNOWN
    through = f"{trust.certified_through:%Y-%m-%d %H:%M}" if trust.certified_through else "nothing yet"
    owed = trust.shades[Shade.DIRTY] + trust.shades[Shade.NEVER]
    wrong = trust.shades[Shade.FAILED] + trust.shades[Shade.HOLED]
    said = [f"certified to {through}"]
    said += [f"{format_quantity(owed, 'interval')} to build"] if owed else []
    said += [f"{format_quantity(wrong, 'interval')} failed or holed"] if wrong else []
    behind = known.seen.behind.get(node.name)
    said += [f"slices complete to epoch {behind.frontier} only"] if behind else []
    return said, Health.BAD if wrong or behind else Health.OWING if owed else Health.GOOD


def tell_sink(node: Node, known: Known) -> tuple[list[str], Health]:
    """Say how far a target is behind what is served."""
    state = known.sinks[node.name]
    late = state.behind_seconds
    if state.behind is None:
        return ["nothing is served yet"], Health.UNKNOWN
    said = ["shows the newest" if not late else f"{format_duration(late)} behind"]
    if state.wrong:
        return [*said, f"an audit found {state.wrong:,} wrong"], Health.BAD
    if not state.up:
        stopped = known.seen.actual.value == "stopped"
        return [*said, "sends nothing"], Health.UNKNOWN if stopped else Health.BAD
    return said, Health.OWING if late and late > LATE else Health.GOOD


TELLERS = {
    NodeKind.SOURCE: tell_source,
    NodeKind.RECORDS: tell_records,
    NodeKind.DERIVED: tell_derived,
    NodeKind.VIEW: tell_view,
    NodeKind.SINK: tell_sink,
}


def draw_curve(way: Sequence[Id], graph: Graph) -> str:
    """Draw an edge as an SVG path: from the right of a node, straight through the columns it passes, to another."""
    x, y = place(way[0], graph)
    path = f"M{x + WIDTH} {y}"
    for id in way[1:]:
        half = x + WIDTH + APART // 2
        x, to = place(id, graph)
        path += f"C{half} {y} {half} {to} {x} {to}" + (f"h{WIDTH}" if id != way[-1] else "")
        y = to
    return path


def place(id: Id, graph: Graph) -> tuple[int, int]:
    """Return where the left of a node is, in the middle of its height, in pixels."""
    return graph.columns[id] * (WIDTH + APART), round(graph.rows[id] * (HEIGHT + 18)) + HEIGHT // 2
