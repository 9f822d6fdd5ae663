"""What all formats of records have in common, and the checks that several of them make."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError
from seamline.model.types.schema import Schema

CONNECTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Format:
    """What all formats have; ``kind`` names one in reasons: "malformed json"; a ``textual`` one spells numbers."""

    kind: ClassVar[str] = ""
    textual: ClassVar[bool] = False

    def check(self, schema: Schema) -> None:
        """Raise DefinitionError where the options are wrong or do not fit the columns."""

    @property
    def facts(self) -> Any:
        """Return what takes part in the record version: the name alone where every option is its default.

        Of a registry only that there is one: where it is, and what it has, is no part of what a definition means.
        """
        options = {each.name: getattr(self, each.name) for each in fields(self)}
        registered = {"registry": True} if options.pop("registry", "") else {}
        defaults = {each.name: each.default for each in fields(self) if each.name != "registry"}
        plain = options == defaults and not registered
        return self.kind if plain else {"kind": self.kind, **options, **registered}


def check_registry(name: str) -> None:
    """Refuse a registry by whose name neither a connection nor a folder can be called."""
    if name and not CONNECTION.fullmatch(name):
        raise DefinitionError(
            f"{name!r} is not a valid name of a connection.",
            hint="the name of an Airflow connection has letters, digits, _, - and dots.",
            field="registry",
        )


def check_flat(schema: Schema) -> None:
    """Refuse columns with parts: a cell has none."""
    nested = next((field for field in schema.fields if field.type.nested), None)
    if nested:
        raise DefinitionError(
            f"Column {nested.name!r} is {nested.type}, but a cell of text cannot contain nested values.",
            hint="declare it STRING, or use a format with nested values.",
        )


def require_record_columns(schema: Schema, names: list[str], place: str) -> None:
    """Refuse columns that no record can have."""
    missing = next((field.name for field in schema.fields if field.name not in names), None)
    if missing:
        raise DefinitionError(
            f"Column {missing!r} is not in {place}.", hint=f"it has {', '.join(names) or 'no fields'}."
        )
