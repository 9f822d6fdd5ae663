"""The key of a view that most of an epoch's rows have: one key that is in most rows is the work of one part."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.plan.stream.hot_keys import HotKey

LONGEST = 60
"""Characters of a value that are shown."""


def find_hot_key(view: CompiledView, states: pa.Table) -> HotKey | None:
    """Find the key of the largest of merged states, and count its rows in all panes; None without keys or rows."""
    if not states.num_rows or not view.keys:
        return None
    at = pc.index(states["rows"], pc.max(states["rows"])).as_py()
    key = {each.name: states[each.name][at] for each in view.keys}
    same = pa.chunked_array([pa.repeat(True, states.num_rows)])
    for name, value in key.items():
        column = states[name]
        same = pc.and_(
            same, pc.is_null(column) if not value.is_valid else pc.fill_null(pc.equal(column, value), False)
        )
    return HotKey(
        ", ".join(f"{name}={format_key_value(value.as_py())}" for name, value in key.items()),
        pc.sum(states["rows"].filter(same)).as_py() or states["rows"][at].as_py(),
    )


def format_key_value(value: Any) -> str:
    """Write a value of a key, which may be long."""
    text = "NULL" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
