"""A writer's schema, as a registry has it under a number that never means another one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

AVRO, PROTOBUF, JSON_SCHEMA = "AVRO", "PROTOBUF", "JSON"
"""The kinds, in the words of registries."""
UNKNOWN, INCOMPATIBLE = "unknown schema", "incompatible schema"
"""Why a record is refused for the schema that it names: the registry has none, or the definition cannot read it."""
KINDS = {"avro": AVRO, "protobuf": PROTOBUF, "json": JSON_SCHEMA}
"""The kind of a schema that fits a format."""
WANTED = re.compile(r"Schemas of the registry '([^']+)' are not kept yet: (\d[\d, ]*)\.")


@dataclass(frozen=True)
class Reference:
    """A schema that another one builds upon."""

    name: str
    """What the other one calls it: a full name of Avro's, the path of an import of protobuf's."""
    text: str
    """Its text."""


@dataclass(frozen=True)
class WriterSchema:
    """One schema with all that it builds upon."""

    id: int
    """Its number in the registry."""
    kind: str
    """AVRO, PROTOBUF or JSON."""
    text: str
    """Its text."""
    references: tuple[Reference, ...] = ()
    """What it builds upon, each after what that builds upon itself."""

    def to_json(self) -> str:
        """Write it as it is kept."""
        references = [{"name": each.name, "text": each.text} for each in self.references]
        return json.dumps({"id": self.id, "kind": self.kind, "text": self.text, "references": references})

    @classmethod
    def read(cls, text: str | bytes) -> WriterSchema:
        """Read what ``to_json`` wrote."""
        found = json.loads(text)
        references = tuple(Reference(each["name"], each["text"]) for each in found["references"])
        return cls(found["id"], found["kind"], found["text"], references)


class Incompatible(Exception):
    """The definition cannot read what a schema has written."""


def require_kind(kind: str, schema: WriterSchema) -> None:
    """Require that a schema is of the kind that a format has; Incompatible."""
    if schema.kind != KINDS[kind]:
        raise Incompatible(f"is of kind {schema.kind}, not {KINDS[kind]}")


def describe_wanted_schemas(registry: str, ids: list[int]) -> str:
    """Say which schemas a task lacks, in words that ``find_wanted_schemas`` understands."""
    return f"Schemas of the registry {registry!r} are not kept yet: {', '.join(map(str, ids))}."


def find_wanted_schemas(said: str) -> dict[str, list[int]]:
    """Find which schemas a task has said that it lacks, by registry; none where it failed for something else."""
    found: dict[str, set[int]] = {}
    for registry, ids in WANTED.findall(said):
        found.setdefault(registry, set()).update(map(int, ids.split(", ")))
    return {registry: sorted(ids) for registry, ids in found.items()}
