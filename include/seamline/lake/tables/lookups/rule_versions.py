"""Versions of a table of rules that a topic makes: the newest rule of each key, and which of them are in force.

A version has each rule's key and place in Kafka beside what a look-up reads of it, so that the next one can be made of
it, and rules that are not in force, so that they can come into force.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from seamline.lake.engine.lookup_joins import CONDITION, key_name
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.store.locations import Location
from seamline.lake.tables.lookups.lookup_tables import (
    MOST_OF_ALL,
    MOST_RULES,
    hash_lookup_rows,
    table_schema,
    write_lookup_version,
)
from seamline.model.compile.lookups.lookup_join import MOST_CONDITIONS, LookupJoin
from seamline.plan.stream.rule_counts import RuleCount, describe_waiting_rules

log = logging.getLogger("seamline.lookups")
PLACE: Mapping[str, str] = {
    name: f"record {name[1:]}"
    for name in ("_topic", "_topic_id", "_partition", "_offset", "_kafka_timestamp", "_key")
}
"""What a version keeps of the record that a rule came in, by the names of its columns: no other is called so."""
KEY, ORDER = PLACE["_key"], [PLACE[name] for name in ("_kafka_timestamp", "_topic", "_partition", "_offset")]
IN_FORCE = "in force"
"""Whether records meet a rule: a newer one may have its name, and there may be more than can be compared."""


def rules_schema(join: LookupJoin) -> pa.Schema:
    """Return the columns of a version."""
    places = [COORDINATES.field(name).with_name(kept) for name, kept in PLACE.items()]
    return pa.schema([*places, *table_schema(join), pa.field(IN_FORCE, pa.bool_())])


@lru_cache(maxsize=8)
def read_rules(path: Location) -> pa.Table:
    """Read all rules of a version, those that are not in force too."""
    return read_plain_columns(path)


def select_rules_in_force(table: pa.Table) -> pa.Table:
    """Return what a look-up reads of a version; a table that no topic makes is returned as it is."""
    if IN_FORCE not in table.column_names:
        return table
    return table.filter(table[IN_FORCE]).drop_columns([*PLACE.values(), IN_FORCE])


def fold_rules(held: pa.Table, rules: pa.Table, removed: Mapping[bytes, int], join: LookupJoin) -> pa.Table:
    """Put newer rules over those that are held, and return the next version.

    ``rules`` are in the order in which they were read, without ``IN_FORCE``; ``removed`` has for a key the number of
    those of them that were read before its last tombstone. One without a name takes its key out, too; one that says
    what its key's last one says changes nothing.
    """
    newest = {key: at for at, key in enumerate(held[KEY].to_pylist()) if key not in removed}
    both = pa.concat_tables([held.drop_columns([IN_FORCE]), rules.select(held.column_names[:-1])])
    said = list(zip(*(both[name].to_pylist() for name in table_schema(join).names), strict=True))
    names = both[join.columns[0][1].name].to_pylist()
    for at, key in enumerate(rules[KEY].to_pylist(), held.num_rows):
        if at - held.num_rows < removed.get(key, 0):
            continue
        if names[at] is None:
            newest.pop(key, None)
        elif key not in newest or said[newest[key]] != said[at]:
            newest[key] = at
    kept = both.take(pa.array(newest.values(), pa.int64()))
    kept = kept.sort_by([(name, "ascending") for name in ORDER]).combine_chunks()
    good, waiting = judge_rules(join, kept)
    if waiting:
        name = kept[join.columns[0][1].name][waiting[0]].as_py()
        log.warning("%s The first is %r.", describe_waiting_rules(join.name, len(waiting)), name)
    return kept.append_column(rules_schema(join).field(IN_FORCE), pa.array(good, pa.bool_()))


def judge_rules(join: LookupJoin, kept: pa.Table) -> tuple[list[bool], list[int]]:
    """Return of each rule, oldest first, whether it is in force, and the places of those that wait for room.

    A rule without a key of the look-up matches nothing. Of rules of one key and name the newest is in force; beyond the
    bounds of a table of rules the oldest are, and the others wait.
    """
    keys = [key_name(name) for name, _ in join.keys]
    name = join.columns[0][1].name
    columns = [kept[each].to_pylist() for each in (*keys, name, *([CONDITION] if join.condition else []))]
    rows = list(zip(*columns, strict=True)) if kept.num_rows else []
    newest = {row[: len(keys) + 1]: at for at, row in enumerate(rows)}
    most, counts, conditions = MOST_RULES if keys else MOST_OF_ALL, Counter[object](), set[str]()
    found, waiting = list[bool](), list[int]()
    for at, row in enumerate(rows):
        key, named = row[: len(keys)], row[: len(keys) + 1]
        good = None not in named and newest[named] == at
        fresh = join.condition and row[-1] not in conditions
        if good and (counts[key] == most or (fresh and len(conditions) == MOST_CONDITIONS)):
            good = False
            waiting.append(at)
        if good:
            counts[key] += 1
            conditions.update(row[-1:] if join.condition else ())
        found.append(good)
    return found, waiting


def count_rules(join: LookupJoin, table: pa.Table) -> RuleCount:
    """Count the rules of a version."""
    good, waiting = judge_rules(join, table)
    return RuleCount(good.count(True), len(waiting))


def keep_rule_version(name: str, table: pa.Table, layout: Layout) -> str:
    """Store a version under its hash, and return that."""
    version = hash_lookup_rows(table)
    path = layout.lookup(name, version)
    if not path.exists():
        write_lookup_version(table, path)
    return version
