"""Definitions as somebody may write them, made from a seed: names, types, keys, windows, measures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

from tests.lives.records import EXACT, LARGEST, POOLS, Column
from tests.lives.topic import IDS, NAMES

import seamline
from seamline import Batch, KafkaSource, Pipeline, Rule, View, Watermark
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.layers import Stream
from seamline.model.definition.windows import Global, Session, Sliding, Tumbling, Window
from seamline.model.errors import DefinitionError
from seamline.model.measures import Measure
from seamline.model.protocol.offsets import Lane

PLAIN = ("customer", "amount", "shop", "kind", "note", "price")
HOSTILE = (
    "s", "i", "n", "x", "v", "k", "e", "t", "a", "value", "values", "item", "items", "key", "rows", "pane", "epoch",
    "count", "sum", "total", "error", "state", "states", "interval", "generation", "window", "grouping", "select",
    "order", "group", "where", "table", "end", "from_epoch", "to_epoch", "partition", "offset", "topic", "timestamp",
    "Key", "VALUE", "date", "time", "start", "struct", "list", "map", "left", "lost", "at", "cell", "id", "place",
)  # fmt: skip
SHORT = ("i", "s", "x")
"""Names as one takes them for a parameter: every other definition has columns of them."""
WINDOWS: tuple[Callable[[], Window], ...] = (
    lambda: Tumbling("1 hour"),
    lambda: Tumbling("1 day"),
    lambda: Sliding("2 hours", "1 hour"),
    lambda: Session("45 minutes"),
    lambda: Global(),
    lambda: Tumbling("15 minutes", offset="5 minutes"),
)
NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL(18,2)", "DECIMAL(38,18)")
KEYS = ("STRING", "INT", "BIGINT", "BOOLEAN", "DATE", "DECIMAL(18,2)")
ROUGH = ("DOUBLE",)
LONG = "DECIMAL(38,18)"
"""The type whose totals may be too large for it."""


def meets(divisor: int, id: int) -> bool:
    """Return whether an id meets the rule that it is no multiple of a number; 0 is no rule."""
    return not divisor or bool(id % divisor)


@dataclass(frozen=True)
class Shape:
    """What a life's definition is drawn from; the pipeline follows from it."""

    columns: tuple[Column, ...]
    time: str
    id: str
    unique: bool
    lanes: int
    pipeline: CompiledPipeline
    divisor: int = 0
    by: str = ""
    """The column by which rows find a rate; none if empty (``rates``)."""
    pairs: str = ""
    """What is asked of the rates of a pair."""
    within: timedelta | None = None
    """For how long the stream knows copies of a row; None where it looks for none (``copies``)."""
    topics: int = 1
    """How many topics the lanes are of."""

    @property
    def rated(self) -> Column | None:
        """The column by which rows find a rate."""
        return next((each for each in self.columns if each.name == self.by), None)

    @property
    def parted(self) -> bool:
        """Whether epochs go through parts."""
        return bool(self.pipeline.definition.stream.parts)

    @property
    def joined(self) -> bool:
        """Whether rows are joined."""
        return bool(self.pipeline.definition.derive)

    def source_of(self, lane: Lane) -> str:
        """Name the source of a lane's records; empty where there is one without a name."""
        sources = self.pipeline.definition.sources
        [name] = [each.name for each in sources if NAMES[lane.topic_id] in each.topics]
        return name

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Return whether a record's row meets the rule, if there is one."""
        return meets(self.divisor, row[self.id])


def shaped(chance: Random, *, on: Collection[str]) -> Shape:
    """Draw a definition that `seamline check` passes; ``on`` says how hostile names and values are."""
    while True:
        try:
            return attempted(chance, on=on)
        except DefinitionError:
            # A name that is refused does no harm.
            continue


def attempted(chance: Random, *, on: Collection[str]) -> Shape:
    """Draw a definition; DefinitionError where it is refused."""
    names = "hostile names" in on
    pool = hostile(chance, 7) if names else chance.sample(PLAIN, 5)
    time, id = ("at", "number") if not names else (pool[0], pool[1])
    columns = tuple(column(name, chance, on=on) for name in pool[-chance.randint(2, 4) :])
    unique = chance.random() < 0.4
    views = [view(f"v{at}", columns, chance, names=names) for at in range(chance.randint(1, 2))]
    spelled = ", ".join(f"{each.name} {each.type}" for each in columns)
    pipeline = Pipeline(
        name="life",
        source=KafkaSource(
            topic="events",
            schema=f"{id} BIGINT NOT NULL, {spelled}, {time} TIMESTAMP",
            event_time=time,
            event_id=[id] if unique else [],
            watermark=Watermark("10 minutes", idle_after="1 hour"),
            max_future="3 days",
        ),
        views=views,
        batch=Batch("1 day", "2024-01-01", provisional=chance.random() < 0.3),
        stream=Stream(edge_epochs=chance.choice([1, 1, 2, 4]), serve_every="1 hour"),
    )
    lanes = chance.randint(1, 3)
    # No draw of its own: a seed stands for the same life as ever.
    parted = replace(pipeline, stream=replace(pipeline.stream, parts=PARTS[lanes]))
    return Shape(columns, time, id, unique, lanes, compile_pipeline(parted))


PARTS = {1: 0, 2: 3, 3: 1}
"""Into how many parts epochs go, by the number of lanes; 0 where the driver merges states."""


SEVERAL = 0.4
"""In so many lives the lanes are of several topics."""


def spread(shape: Shape, seed: int) -> Shape:
    """Return the definition of a life with a source of several topics; as it was in most lives."""
    chance = Random(f"{seed}/topics")
    if chance.random() > SEVERAL:
        return shape
    count = chance.randint(2, len(IDS))
    names = chance.sample([*IDS][:count], count)
    definition = shape.pipeline.definition
    [source] = [replace(each, topic=names) for each in definition.sources]
    pipeline = compile_pipeline(replace(definition, source=[source] if shape.joined else source))
    return replace(shape, topics=count, lanes=max(shape.lanes, count), pipeline=pipeline)


def hostile(chance: Random, count: int) -> list[str]:
    """Draw different names; the last are those of columns."""
    short = chance.sample(SHORT, len(SHORT)) if chance.random() < 0.5 else []
    found = dict.fromkeys([*short, *chance.sample(HOSTILE, count)])
    return [*reversed(list(found)[:count])]


def column(name: str, chance: Random, *, on: Collection[str]) -> Column:
    """Draw a column."""
    exact = "exact decimals" in on
    type = chance.choice([*POOLS, LONG, LONG] if exact else [*POOLS])
    pool = EXACT.get(type, POOLS[type]) if exact else POOLS[type]
    values = chance.sample(pool, min(5, len(pool)))
    # Two such values are a total that the type does not hold.
    return Column(name, type, (*values[1:], LARGEST) if exact and type == LONG else tuple(values))


def view(name: str, columns: Sequence[Column], chance: Random, *, names: bool) -> View:
    """Draw a view."""
    fit = [each.name for each in columns if each.type in KEYS]
    keys = chance.sample(fit, min(chance.randint(0, 2), len(fit)))
    taken = [each.name for each in columns]
    free = [each for each in HOSTILE if each not in taken] if names else [f"m{at}" for at in range(9)]
    labels = chance.sample(free, chance.randint(1, 4))
    measures = {label: measure(columns, chance) for label in labels}
    return View(name, keys=keys, window=chance.choice(WINDOWS)(), measures=measures)


def measure(columns: Sequence[Column], chance: Random) -> Measure:
    """Draw a measure of a column that it fits, or a count."""
    of = chance.choice(list(columns))
    fit: list[Callable[[], Measure]] = [seamline.count, lambda: seamline.count(of.name)]
    if of.type in NUMBERS:
        # What totals carry beyond their type is most of what adding up can get wrong.
        often = 4 if of.type == LONG else 1
        fit += often * [lambda: seamline.sum(of.name), lambda: seamline.avg(of.name)]
    if of.type in NUMBERS and not of.type.startswith("DECIMAL"):
        fit.append(lambda: seamline.histogram(of.name, [0, 2]))
    if of.type not in ("BOOLEAN", "DOUBLE"):
        fit += [lambda: seamline.min(of.name), lambda: seamline.max(of.name)]
    if of.type not in ROUGH:
        # The SQL of top lists is the longest, and has most names of its own.
        fit += 3 * [lambda: seamline.top(of.name, 2)] + [lambda: seamline.collect_distinct(of.name, limit=3)]
    fit += [lambda: seamline.first(of.name), lambda: seamline.last(of.name)]
    return chance.choice(fit)()


def changed(shape: Shape, at: int) -> Shape:
    """Return the definition with another version of one view: one more count."""
    views = list(shape.pipeline.definition.views)
    place = at % len(views)
    name = f"more{at}"
    views[place] = replace(views[place], measures={**views[place].measures, name: seamline.count()})
    return replace(shape, pipeline=compile_pipeline(replace(shape.pipeline.definition, views=views)))


def ruled(shape: Shape) -> Shape:
    """Return the definition with another rule, by which records are judged again."""
    divisor = shape.divisor + 2
    rules, definition = [Rule("no multiple", f"`{shape.id}` % {divisor} <> 0")], shape.pipeline.definition
    if shape.joined:
        sources = [replace(each, rules=rules) for each in definition.sources]
        changed = replace(definition, source=sources)
    else:
        changed = replace(definition, rules=rules)
    return replace(shape, divisor=divisor, pipeline=compile_pipeline(changed))


def widened(shape: Shape, seed: int, *, on: Collection[str]) -> Shape:
    """Return the definition with a column that the topic got since, and another version of a view that measures it.

    A source among several has no added columns: where rows are joined it stays as it is.
    """
    if shape.joined:
        return shape
    chance, definition = Random(seed), shape.pipeline.definition
    name = f"added{len(definition.source.added)}"
    new = column(name, chance, on=on)
    source = replace(definition.source, added=[*definition.source.added, f"{name} {new.type}"])
    views = list(definition.views)
    place = chance.randrange(len(views))
    measures = {**views[place].measures, f"of_{name}": measure([new], chance)}
    views[place] = replace(views[place], measures=measures)
    pipeline = compile_pipeline(replace(definition, source=source, views=views))
    return replace(shape, columns=(*shape.columns, new), pipeline=pipeline)
