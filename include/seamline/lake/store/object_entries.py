"""Objects as a store describes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Entry:
    """An object as a listing shows it."""

    key: str
    """Its key."""
    size: int
    """Bytes."""
    modified: datetime
    """When it was put there, by the store's clock."""
    tag: str
    """What distinguishes its content from another."""


def describe_object(found: Any) -> Entry:
    """Describe an object by what the client says of it."""
    return Entry(found["path"], found["size"], found["last_modified"], found["e_tag"] or "")
