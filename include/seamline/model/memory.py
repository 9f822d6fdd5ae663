"""Memory as definitions say it, and as Spark does: ``"512m"``, ``"4g"``."""

from __future__ import annotations

import re

from seamline.model.errors import DefinitionError

UNITS = {"m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_memory(text: str) -> int:
    """Return the bytes; DefinitionError for what says no memory."""
    found = re.fullmatch(r"([1-9]\d*)([mgt])b?", text.lower()) if isinstance(text, str) else None
    if not found:
        raise DefinitionError(f"{text!r} is not a memory size.", hint='write "800m" or "4g".')
    return int(found[1]) * UNITS[found[2]]
