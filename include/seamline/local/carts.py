"""The function of the example abandoned_carts, as a user of the platform would write it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any


class Carts:
    """A visitor's cart: what is in it, until it is bought, or left for half an hour."""

    state = "total DECIMAL(10,2), clicks INT"
    emits = "kind STRING, total DECIMAL(10,2), clicks INT"
    sides: Mapping[str, str] = {"hesitant": "clicks INT"}
    patience = timedelta(minutes=30)
    """After how long without a click a cart counts as left: of the class, whose constants are in a view's version."""

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...] | None:
        """Take a click: it buys the cart, or says what is in it now."""
        clicks = state.clicks + 1 if state else 1
        if row["bought"]:
            out.emit("bought", row["total"], clicks)
            return None
        if clicks == 10:
            out.side("hesitant", clicks)
        out.clear_timers()
        out.timer(out.at + self.patience)
        return (row["total"], clicks)

    def timer(self, state: Any, at: Any, out: Any) -> None:
        """Nobody has come back."""
        out.emit("left", state.total, state.clicks)
