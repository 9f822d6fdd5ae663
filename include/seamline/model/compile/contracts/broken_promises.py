"""What an edit of a definition breaks of its contract: records that were allowed, and rows that were promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seamline.model.compile.contracts.odcs import VIEW
from seamline.model.types.schema import SqlType, TypeKind, parse_type


def list_broken_promises(promised: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """List what a contract promises that another one does not: of what it is, and what is the matter.

    A topic promises its producers that a record which is allowed is accepted; a view promises its readers that its
    columns stay what they are. What is added breaks nothing, unless records must have it.
    """
    found = {each["name"]: each for each in now["schema"]}
    for each in promised["schema"]:
        place = str(each["physicalName"])
        if each["name"] not in found:
            yield place, "it is no longer declared"
        elif each["physicalType"] == VIEW:
            yield from ((place, why) for why in list_broken_of_view(each, found[each["name"]]))
        else:
            yield from ((place, why) for why in list_broken_of_topic(each, found[each["name"]]))


def list_broken_of_topic(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """List which records are no longer accepted, or mean something else."""
    yield from list_changed_facts(old, new)
    before, after = by_name(old), by_name(new)
    for name, column in after.items():
        if column.get("required") and not before.get(name, {}).get("required"):
            yield f"a record must now have {name}"
    for name in (each for each in before if each in after):
        was, is_ = before[name]["physicalType"], after[name]["physicalType"]
        if not takes_all_of(parse_type(is_, name), parse_type(was, name)):
            yield f"{name} was {was} and is {is_}"
    if keys_of(old) != keys_of(new):
        yield f"an event was known by {keys_of(old) or 'nothing'}, and is by {keys_of(new) or 'nothing'}"
    rules = {each["name"]: each["description"] for each in old.get("quality", ())}
    for each in new.get("quality", ()):
        if rules.get(each["name"]) != each["description"]:
            yield f"rule {each['name']} refuses what was accepted"


def takes_all_of(new: SqlType, old: SqlType) -> bool:
    """Return whether a column of a record takes all values that it took as another type, and keeps them."""
    if (old.kind, new.kind) == (TypeKind.INT, TypeKind.BIGINT):
        return True
    if old.kind != new.kind:
        return False
    if old.element and new.element:
        return takes_all_of(new.element, old.element)
    if old.kind is TypeKind.DECIMAL:
        return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    known, older = ({each.name: each for each in some.fields} for some in (new, old))
    kept = all(
        name in known and takes_all_of(known[name].type, each.type) and known[name].nullable >= each.nullable
        for name, each in older.items()
    )
    return kept and all(each.nullable for name, each in known.items() if name not in older)


def list_broken_of_view(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """List which columns are gone or are others."""
    yield from list_changed_facts(old, new)
    before, after = by_name(old), by_name(new)
    for name, column in before.items():
        if name not in after:
            yield f"{name} is gone"
        elif column["physicalType"] != after[name]["physicalType"]:
            yield f"{name} was {column['physicalType']} and is {after[name]['physicalType']}"
    if keys_of(old) != keys_of(new):
        yield f"a row was known by {keys_of(old)}, and is by {keys_of(new)}"


def list_changed_facts(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """List what is said of the whole and is another."""
    now = {each["property"]: each["value"] for each in new.get("customProperties", ())}
    for each in old.get("customProperties", ()):
        name, was = each["property"], each["value"]
        if now.get(name) != was:
            yield f"its {name.replace('_', ' ')} was {was} and is {now.get(name)}"


def by_name(described: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the columns by their names."""
    return {each["name"]: each for each in described.get("properties", ())}


def keys_of(described: Mapping[str, Any]) -> str:
    """Name the columns of the key."""
    keyed = [each for each in described.get("properties", ()) if each.get("primaryKey")]
    return ", ".join(each["name"] for each in sorted(keyed, key=lambda each: each["primaryKeyPosition"]))
