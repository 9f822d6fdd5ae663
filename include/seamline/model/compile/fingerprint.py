"""Hashes of what can change a number: the record version and a view's fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from seamline.model.compile.as_of.as_of_rules import as_of_facts
from seamline.model.compile.changes.declared_changelogs import changelog_facts, find_changelog
from seamline.model.compile.defaults import past_of
from seamline.model.compile.evolution import extend_record_version
from seamline.model.compile.join_rules import find_join, join_facts
from seamline.model.compile.lookups.lookup_join import list_pinned_lookups
from seamline.model.compile.processes.fold_rules import find_fold, fold_facts
from seamline.model.compile.sources import (
    has_several,
    list_narrowed,
    list_view_sources,
    split_process_name,
)
from seamline.model.compile.transform import makes_exactly
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.debezium import DELETED
from seamline.model.definition.formats import format_of
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import DIGITS, EXACT, KafkaSource, Lookup, Source
from seamline.model.measures import Formula, Measure, Own
from seamline.model.types.schema import Field, Schema, has_decimals
from seamline.model.user_code import function_of, hash_code, name_of

KERNEL = 1
"""Raised when the kernel itself validates a record differently."""


BOUNDS = ("max_record_bytes", "max_record_parts", "max_stray_intervals")
DEFAULTS = {each.name: each.default for each in fields(KafkaSource) if each.name in BOUNDS}
"""What records may cost where a definition does not say: versions of before there were bounds keep their names."""


def hash_json_facts(facts: Any) -> str:
    """Hash JSON-like facts to 12 hex digits, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


def record_facts(pipeline: Pipeline, uses: Iterable[Field] = ()) -> dict[str, Any]:
    """List all that turns a raw record into a row; ``uses`` are the added columns that its steps use.

    Of several sources that is what each would say alone: rows of all have one record version.
    """
    if has_several(pipeline):
        alone = list_narrowed(pipeline)
        return {
            "sources": {
                each.only_source.name: {**record_facts(each), "topics": list(each.topics)} for each in alone
            }
        }
    source = pipeline.only_source
    steps = {
        "select": [[name, text] for name, text in pipeline.select.items()],
        "where": pipeline.where,
        "max_past": past_of(pipeline),
        "dedup_within": source.dedup_within,
        "side": [[name, text] for name, text in pipeline.side.items()],
        "transform": transform_facts(pipeline) if pipeline.transform else None,
        "lookups": [
            [
                each.name,
                table_of(each),
                list(each.on.items()),
                list(each.columns),
                each.prefix,
                *rule_facts(each),
            ]
            for each in list_pinned_lookups(pipeline)
        ],
        "added": added_column_facts(uses, fresh=exact_later(pipeline)),
        "decimals": EXACT if exact_first(pipeline) else "",
        "deletions": list(source.key) if DELETED in source.schema else [],
        "bounds": [[name, bound] for name, bound in bounds_of(source).items() if bound != DEFAULTS[name]],
    }
    return {
        **{name: said for name, said in steps.items() if said},
        "kernel": KERNEL,
        "format": format_of(source.format).facts,
        "schema": source.schema,
        "event_time": source.event_time,
        "event_id": list(source.event_id),
        "max_future": source.max_future,
        "start": pipeline.batch.start,
        "rules": [[rule.name, rule.condition] for rule in pipeline.rules],
    }


def table_of(lookup: Lookup) -> str | list[str]:
    """Return where a look-up's rows are: a table's name, or that of a source in a list."""
    return [lookup.of] if lookup.of else lookup.table


def rule_facts(lookup: Lookup) -> list[str]:
    """List what makes a look-up a table of rules; nothing for another, so that old versions keep their names."""
    return [each for each in (lookup.every, lookup.where, lookup.condition) if each or lookup.every]


def event_time_identity(pipeline: Pipeline) -> str:
    """Name the clock of event times: a column, with a hash of the steps that make it where the source has none.

    Several sources have one clock together.
    """
    if has_several(pipeline):
        alone = list_narrowed(pipeline)
        return ", ".join(sorted(f"{each.only_source.name}: {event_time_identity(each)}" for each in alone))
    name, steps = pipeline.only_source.event_time, list(pipeline.select.items())
    made = [pair[0] for pair in steps]
    made_here = steps[: made.index(name) + 1] if name in made else []
    own = transform_facts(pipeline) if pipeline.transform else None
    added = own and any(field.name == name for field in Schema.parse(pipeline.transform_schema).fields)
    return f"{name} {hash_json_facts([made_here, own])}" if made_here or added else name


def bounds_of(source: Source) -> dict[str, int]:
    """List what records may cost; with another bound records that were refused are reprocessed."""
    return {name: getattr(source, name) for name in DEFAULTS}


def transform_facts(pipeline: Pipeline) -> list[str]:
    """List what the user's own step is; where its function stands does not matter."""
    code = hash_code(function_of(name_of(pipeline.transform)))
    exact = [EXACT] if makes_exactly(pipeline) else []
    rows = [f"rows {pipeline.transform_rows}"] if pipeline.transform_rows else []
    return [code, pipeline.transform_schema, pipeline.transform_version, *exact, *rows]


def added_column_facts(uses: Iterable[Field], *, fresh: bool) -> list[list[str]]:
    """List added columns that are used, with their types; one that is not used changes nothing."""
    return sorted(
        [field.name, field.type.spark, *([EXACT] if fresh and field.type.decimals else [])] for field in uses
    )


def exact_later(pipeline: Pipeline) -> bool:
    """Return whether the first exact DECIMAL of a source can only be among the columns that were added.

    Those say so themselves: the columns of before, and their hash, stay what they are.
    """
    return reads_exactly(pipeline) and not exact_first(pipeline)


def exact_first(pipeline: Pipeline) -> bool:
    """Return whether a column of ``schema=`` is a DECIMAL that is read by its own digits."""
    return reads_exactly(pipeline) and has_decimals(pipeline.only_source.schema)


def reads_exactly(pipeline: Pipeline) -> bool:
    """Return whether numbers of a record become DECIMAL by their own digits."""
    said = pipeline.only_source.decimals
    return said == DIGITS or (said == EXACT and format_of(pipeline.only_source.format).textual)


def record_version(pipeline: Pipeline, added: Iterable[Field] = (), uses: Iterable[Field] = ()) -> str:
    """Hash what turns a raw record into a row, and name all ``added`` columns; ``uses`` are in the hash too.

    Parsed columns are a cache under it.
    """
    fresh = not has_several(pipeline) and exact_later(pipeline)
    return extend_record_version(hash_json_facts(record_facts(pipeline, uses)), added, fresh=fresh)


def measure_facts(measure: Measure) -> dict[str, Any]:
    """List what a measure is; a condition only where there is one, so that old versions keep their names."""
    given = {
        name: convert_to_list(value) for name, value in vars(measure).items() if name != "where" or value
    }
    if isinstance(measure, Formula):
        given["made_of"] = {name: measure_facts(part) for name, part in measure.made_of.items()}
    if isinstance(measure, Own):
        given["by"] = measure.loaded.code
    return {"kind": measure.kind, **given}


def convert_to_list(value: Any) -> Any:
    """Write a tuple as the list that JSON has."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def view_facts(
    pipeline: Pipeline, view: View, judged: Iterable[Field] = (), uses: Iterable[Field] = ()
) -> dict[str, Any]:
    """List all that can change a view's numbers, the record's meaning and the interval grid included.

    Of the added columns ``judged`` are those that the record's steps use, ``uses`` those that the view does.
    """
    names, several = list_view_sources(view), has_several(pipeline)
    join, process = find_join(pipeline, names), find_fold(pipeline, names)
    changelog = find_changelog(pipeline, names)
    used = added_column_facts(uses, fresh=not several and exact_later(pipeline))
    topics = tuple(sorted(pipeline.topics)) if several else pipeline.topics
    return {
        **({"of": sorted(names)} if several else {}),
        **({"join": as_of_facts(join) if isinstance(join, AsOf) else join_facts(join)} if join else {}),
        **(
            {"process": fold_facts(process, split_process_name(names[0])[1], pipeline.batch.interval)}
            if process
            else {}
        ),
        **({"changelog": changelog_facts(pipeline, changelog)} if changelog else {}),
        "topic": topics[0] if len(topics) == 1 and not several else topics,
        "record": record_facts(pipeline, judged),
        "interval": pipeline.batch.interval,
        "keys": list(view.keys),
        "window": view.window.facts,
        "measures": {name: measure_facts(measure) for name, measure in view.measures.items()},
        "where": view.where,
        **({"explode": dict(view.explode)} if view.explode else {}),
        **({"grouping_sets": [list(each) for each in view.grouping_sets]} if view.grouping_sets else {}),
        **({"added": used} if used else {}),
    }


def fingerprint_view(
    pipeline: Pipeline, view: View, judged: Iterable[Field] = (), uses: Iterable[Field] = ()
) -> str:
    """Hash what can change a view's numbers, as ``view_facts`` lists it; its tables are named by it."""
    return hash_json_facts(view_facts(pipeline, view, judged, uses))
