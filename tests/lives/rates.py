"""Lives with a pinned look-up: the definition, the table beside the warehouse, and what rows found in it.

A row finds a rate by one of its columns. Which rate counts is worked out row by row, by the versions that epochs name
and the decisions that a person made since.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.lives.definitions import KEYS, Shape
from tests.lives.derived.joined import in_pairs
from tests.lives.records import Column, meant

import seamline
from seamline import Join, Lookup, View
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.tables.lookups.lookup_tables import hash_lookup_rows, load_lookup
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.windows import Session
from seamline.model.errors import DefinitionError
from seamline.model.protocol.restatement import Restatement

LOOKUP, RATE = "rated", "rated_rate"
SHARE = 0.6
"""Of so many lives with joined rows these have a rate."""
Rates = Mapping[Any, int]
"""Rates by key; a key that is not there has none."""
Row = Mapping[str, Any]
PAIRS: Mapping[str, Callable[[Any, Any], bool]] = {
    "left_rated_rate < 3": lambda left, _: left is not None and left < 3,
    "right_rated_rate <> 2": lambda _, right: right is not None and right != 2,
    "right_rated_rate IS NULL OR left_rated_rate >= right_rated_rate": lambda left, right: (
        right is None or (left is not None and left >= right)
    ),
}
"""What a join may ask of the rates of a pair, and what that means."""


@dataclass(frozen=True)
class Rated:
    """What rows found, and what was decided since; ``read`` gives the version that a row found, and how many decisions
    had been made by then.

    ``named`` is how many decisions the epochs up to one name, ``built`` how many what is published of an interval knew.
    """

    tables: Mapping[str, Rates]
    read: Callable[[int], tuple[str, int]]
    decisions: Sequence[Restatement]
    named: Callable[[int], int]
    built: Mapping[str, int]

    def rate(self, by: str, epoch: int, at: Any, row: Row, number: int) -> int | None:
        """Return what a row finds by a column after so many decisions."""
        version, known = self.read(epoch)
        for each in self.decisions[known:number]:
            if epoch <= each.epoch and each.span.start <= at < each.span.end:
                version = each.version
        return self.tables.get(version, {}).get(row[by])


def rating(shape: Shape, seed: int) -> Shape:
    """Return the definition of a life with joined rows with a rate that they are joined by, or that views count."""
    chance = Random(f"{seed}/rated")
    fit = [each for each in shape.columns if each.type in KEYS]
    if not shape.joined or not fit or chance.random() > SHARE:
        return shape
    definition, by = shape.pipeline.definition, chance.choice(fit)
    [join] = definition.derive
    form = "parquet" if by.type == "STRING" else chance.choice(["csv", "parquet"])
    lookup = Lookup(LOOKUP, f"rates.{form}", on={"k": f"`{by.name}`"}, columns=["rate INT"])
    if chance.random() < 0.3:
        safe = [*join.null_safe, *([RATE] if chance.random() < 0.5 else [])]
        join = replace(join, on={**join.on, RATE: RATE}, null_safe=safe)
    where = chance.choice([*PAIRS, ""])
    views = [rated_view(each, join, chance) for each in definition.views]
    changed = replace(
        definition,
        source=[replace(each, lookups=[lookup]) for each in definition.sources],
        derive=[replace(join, where=in_pairs(join, where))],
        views=views,
    )
    try:
        return replace(shape, pipeline=compile_pipeline(changed), by=by.name, pairs=where)
    except DefinitionError:
        return shape


def rated_view(view: View, join: Join, chance: Random) -> View:
    """Let a view count rates, or group by them."""
    name, joined = RATE, view.of == join.name
    if joined:
        name = in_pairs(join, chance.choice([f"left_{RATE}", f"right_{RATE}"]))
    if chance.random() < 0.4 and not isinstance(view.window, Session):
        key = in_pairs(join, f"left_{RATE}") if joined else RATE
        view = replace(view, keys=[*view.keys, key])
    return replace(view, measures={**view.measures, "rates_of": seamline.sum(name)})


def draw_rates(column: Column, seed: int) -> Rates:
    """Draw a table: a rate for most of the values that a column has."""
    chance = Random(f"{seed}/rates")
    found = {meant(column.type, each): chance.choice([None, 1, 1, 2, 3, 4]) for each in column.pool}
    return {key: rate for key, rate in found.items() if rate is not None}


def write_rates(folder: Path, pipeline: CompiledPipeline, column: Column, rates: Rates) -> str:
    """Write the table, and return its version."""
    [join] = pipeline.lookups
    path = folder / join.table
    draft = path.with_name(f"draft-{path.name}")
    if path.suffix == ".csv":
        with draft.open("w", newline="") as file:
            csv.writer(file).writerows(
                [("k", "rate"), *((spelled(key), rate) for key, rate in rates.items())]
            )
    else:
        keys = pa.array(list(rates), arrow_type(column.type))
        pq.write_table(pa.table({"k": keys, "rate": pa.array(rates.values(), pa.int32())}), draft)
    draft.replace(path)
    return hash_lookup_rows(load_lookup(join))


def spelled(key: Any) -> str:
    """Spell a key as a cell of a csv file."""
    if isinstance(key, bool):
        return str(key).lower()
    return key.isoformat() if isinstance(key, date) else str(key)
