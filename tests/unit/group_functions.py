"""Classes for ``CoGroup``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Both:
    """Says how many rows each side has, and what they are worth; without left rows on a side of its own."""

    emits = "kind STRING, lefts INT, rights INT, worth DECIMAL(10,2)"
    sides: Mapping[str, str] = {"alone": "rights INT"}

    def group(self, key: Any, lefts: Sequence[Any], rights: Sequence[Any], out: Any) -> None:
        """Count them."""
        if not lefts:
            out.side("alone", len(rights))
            return
        if any(row["name"] == "bad" for row in lefts):
            raise ValueError("bad")
        worth = sum(row["total"] or 0 for row in lefts)
        out.emit("both" if rights else "left", len(lefts), len(rights), worth)


class NoGroup:
    """Has nothing to call."""

    emits = "n INT"


class WrongGroup:
    """Cannot be called as it is."""

    emits = "n INT"

    def group(self, key: Any, rows: Any) -> None:
        """Take one side."""


class AsksClock(Both):
    """Asks the clock."""

    def group(self, key: Any, lefts: Any, rights: Any, out: Any) -> None:
        """Ask it."""
        import time

        out.emit("now", int(time.time()), 0, None)
