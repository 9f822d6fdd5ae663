"""Classes for ``Process`` that cost more than they may: where a row is called so."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from typing import Any

NESTED = re.compile(r"(a+)+$")


class Endless(Exception):
    """Never says what it is."""

    def __str__(self) -> str:  # noqa: PLE0307 - that is what is wrong with it
        """Look for the words."""
        while True:
            pass


class Costly:
    """Counts the rows of a key; does what the name of a row says."""

    state = "n INT, text STRING"
    emits = "n INT"

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...]:
        """Count it."""
        n, text = state or (0, "")
        if row["name"] == "loops":
            while True:
                pass
        if row["name"] == "searches":
            NESTED.match("a" * 64 + "b")
        if row["name"] == "tells":
            raise Endless
        if row["name"] == "leaves":
            raise KeyboardInterrupt("it")
        if row["name"] == "dies":
            ctypes.string_at(0)
        if row["name"] == "grows":
            text += "x" * (2 << 20)
        out.emit(n + 1)
        return (n + 1, text)
