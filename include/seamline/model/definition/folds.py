"""Rows that are emitted by a fold over the rows of a key: by a function, a pattern, or both sides' rows in one call."""

from __future__ import annotations

from seamline.model.definition.groups import CoGroup
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.processes import Process

Folded = Process | Pattern | CoGroup
"""What declares such rows."""
