"""How much each measure differs between what was answered and a new generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamline.lake.read.row_differences import is_numeric
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.comparison import Change
from seamline.plan.publish.number_changes import find_largest


def summarize_measure_changes(
    view: CompiledView, differing: Sequence[Mapping[str, Any]]
) -> dict[str, Change]:
    """Say of each measure at how many of the places that differ it does, and by how much at most."""
    return {
        each.name: summarize_measure_change(each.name, differing, number=is_numeric(arrow_type(each.result)))
        for each in view.measures
    }


def summarize_measure_change(name: str, differing: Sequence[Mapping[str, Any]], *, number: bool) -> Change:
    """Say it of one; ``number`` is whether it has numbers, of which those without a share are counted."""
    mine = [each for each in differing if name in each["_measures"]]
    shares = [each["_changes"][name] for each in mine]
    bare = [
        each for each, share in zip(mine, shares, strict=True) if share is None and each["_kind"] == "changed"
    ]
    return Change(len(mine), find_largest(shares), len(bare) if number else 0)
