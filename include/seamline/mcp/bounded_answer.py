"""What a tool returns: JSON of a bounded size, which says so where it is not all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamline.model.errors import BadRange
from seamline.serve.answer_request import as_json

MOST_BYTES = 64 * 1024
"""Of an answer: an agent reads all of it."""


def encode_bounded(found: Mapping[str, Any], cut: str, hint: str, most: int = MOST_BYTES) -> str:
    """Write an answer as JSON; of one that is larger, the list named ``cut`` has as many items as there is room for.

    ``truncated`` then stands before everything else. BadRange where the rest alone is too large.
    """
    text = as_json(found)
    if len(text) <= most:
        return text
    items: Sequence[Any] = found[cut]
    told = {"truncated": describe_cut(cut, len(items), len(items), hint)}
    room = most - len(as_json({**told, **found, cut: []}))
    if room < 0:
        raise BadRange(f"The answer has more than {most:,} bytes.", hint=hint)
    kept = 0
    for each in items:
        # A comma and a space stand between two of them.
        room -= len(as_json(each)) + 2
        if room < 0:
            break
        kept += 1
    told["truncated"] = describe_cut(cut, kept, len(items), hint)
    return as_json({**told, **found, cut: items[:kept]})


def describe_cut(cut: str, kept: int, there: int, hint: str) -> dict[str, Any]:
    """Say what an answer lacks, and how to have it."""
    return {"list": cut, "shown": kept, "of": there, "hint": hint}
