"""The look-ups of a pipeline as its newest epoch has them: versions, and the rules of those that have any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seamline.lake.engine.lookup_joins import CONDITION, key_name
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.lookups.rule_versions import IN_FORCE, PLACE
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.protocol.restatement import Restatement
from seamline.serve.lookup_versions import Use, describe_table, list_lookup_uses

VERSIONS, RULES = 20, 200
"""How many of a look-up's versions and rules are listed."""


@dataclass(frozen=True)
class RuleList:
    """The rules of a version, as many as are listed."""

    columns: tuple[str, ...]
    """What the cells are called."""
    rows: tuple[tuple[Any, ...], ...]
    """Cells, in the order of the columns."""
    total: int
    """How many rules there are."""
    in_force: int
    """How many of them records meet."""


@dataclass(frozen=True)
class LookupState:
    """A look-up that rows are made with."""

    name: str
    """The look-up's name."""
    table: str
    """Where its rows are from."""
    version: str
    """The version in force; empty before the first epoch."""
    uses: tuple[Use, ...]
    """What was read with each version, the newest first."""
    more: int
    """How many older versions are not listed."""
    restated: tuple[Restatement, ...]
    """Restatements with it."""
    rules: RuleList | None
    """None where it has no rules, or its version is not there."""


def list_lookup_states(pipeline: CompiledPipeline, layout: Layout) -> list[LookupState]:
    """List the look-ups whose columns are in rows; what is read does not grow with the log."""
    log = read_condensed_log(layout)
    used, current = list_lookup_uses(log), in_force(log, pipeline.record_version)
    decisions = list_restatements(layout)
    found = []
    for join in pipeline.lookups:
        uses, version = used.get(join.name, [])[::-1], current.get(join.name, "")
        found.append(
            LookupState(
                join.name,
                describe_table(join),
                version,
                tuple(uses[:VERSIONS]),
                max(len(uses) - VERSIONS, 0),
                tuple(each for each in decisions if each.lookup == join.name),
                list_rules(join, layout, version) if join.every and version else None,
            )
        )
    return found


def list_rules(join: LookupJoin, layout: Layout, version: str) -> RuleList | None:
    """List the rules of a version, those that are in force first; None if its file is gone."""
    path = layout.lookup(join.name, version)
    if not path.exists():
        return None
    table = read_plain_columns(path)
    shown = {name: field.name for name, field in join.columns}
    shown = {name: key_name(name) for name, _ in join.keys} | shown
    if join.condition:
        shown[join.condition] = CONDITION
    if IN_FORCE in table.column_names:
        places = {"Kafka key": "_key", "Kafka timestamp": "_kafka_timestamp", "Kafka offset": "_offset"}
        shown |= {"in force": IN_FORCE} | {name: PLACE[of] for name, of in places.items()}
        table = table.sort_by([(IN_FORCE, "descending"), (PLACE["_kafka_timestamp"], "descending")])
    rows = table.slice(0, RULES).select(list(shown.values())).to_pydict()
    cells: Sequence[Sequence[Any]] = list(rows.values())
    good = table[IN_FORCE].to_pylist().count(True) if IN_FORCE in table.column_names else table.num_rows
    return RuleList(tuple(shown), tuple(zip(*cells, strict=True)), table.num_rows, good)
