"""Records that are rules for those of other sources: which of them are none, and what is wrong with these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from seamline.lake.tables.lookups.lookup_tables import find_wrong_condition
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.record_rules import SELECTED

KEYLESS = "rule without a key"


def split_wrong_rules(accepted: pa.Table, pipeline: CompiledPipeline) -> tuple[pa.Table, pa.Table]:
    """Part validated rows of one source into those that may be rules and those that cannot, with reason and detail.

    A row that is not selected takes its key's rule out of force, and need not be one.
    """
    if not pipeline.record.ruling or not accepted.num_rows:
        return accepted, accepted.slice(0, 0)
    wrong: dict[int, tuple[str, str]] = {}
    for join in pipeline.record.ruling:
        for at, detail in find_wrong_rules(accepted, pipeline, join):
            wrong.setdefault(at, (f"error in lookup {join.name}", detail))
    for at, key in enumerate(accepted["_key"].to_pylist()):
        if key is None:
            wrong[at] = KEYLESS, "send each rule with a key in Kafka, by which it can be changed and removed"
    if not wrong:
        return accepted, accepted.slice(0, 0)
    places = sorted(wrong)
    refused = accepted.take(pa.array(places))
    for at, name in enumerate(("_reason", "_detail")):
        refused = refused.append_column(name, pa.array([wrong[place][at] for place in places], pa.string()))
    good = pa.array([at not in wrong for at in range(accepted.num_rows)])
    return accepted.filter(good), refused


def find_wrong_rules(
    accepted: pa.Table, pipeline: CompiledPipeline, join: LookupJoin
) -> Iterator[tuple[int, str]]:
    """Yield the places of rows that are no rules of a look-up, each with why."""
    column = join.columns[0][0]
    names = column_of(accepted, pipeline, column)
    texts = column_of(accepted, pipeline, join.condition) if join.condition else None
    chosen = accepted[SELECTED].to_pylist() if pipeline.record.selective else [True] * accepted.num_rows
    wrong = {text: find_wrong_condition(text, join) for text in {*(texts or ())} if text}
    for at, name in enumerate(names):
        if not chosen[at]:
            continue
        if name is None:
            yield at, f"no {column}, which names the rule"
        elif texts is not None:
            said = f"{name}: no {join.condition}; write true for a rule that has no condition of its own"
            if why := wrong.get(texts[at]):
                said = f"{name}: {join.condition}: {why.message} {why.hint}".strip()
            if why or not texts[at]:
                yield at, said


def column_of(rows: pa.Table, pipeline: CompiledPipeline, name: str) -> list[Any]:
    """Return the values of a column, whose name may be spelt in other letters."""
    field = pipeline.schema.field(name)
    assert field is not None
    found: list[Any] = rows[field.name].to_pylist()
    return found
