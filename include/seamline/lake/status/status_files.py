"""A small file of JSON that a process of this machine replaces whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json_file(file: Path) -> dict[str, Any] | None:
    """Read a JSON object, None if there is no file; ValueError if it is broken."""
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    return found
