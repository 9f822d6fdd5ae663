"""The accuracy of fresh answers, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamline.model.protocol.accuracy import Accuracy
from seamline.plan.spelling import format_duration

STILL = 0.0005
"""Less than this share is no move."""


def format_accuracy(found: Sequence[Accuracy]) -> Iterator[str]:
    """Say of each measure how much its answers still move after their window, and from when on they stay."""
    measures: dict[str, list[Accuracy]] = {}
    for each in found:
        if each.typical is not None:
            measures.setdefault(each.measure, []).append(each)
    for name, ages in measures.items():
        ages.sort(key=lambda each: each.age)
        moving = [each for each in ages if each.there < 1 or abs(each.most or 0) >= STILL]
        if not moving:
            yield f"{name}: what is answered {format_age(ages[0])} stays."
            continue
        later = [each for each in ages if each.age > moving[-1].age]
        stays = (
            f", and nine in ten stay from {format_duration(later[0].age.total_seconds())} on" if later else ""
        )
        yield f"{name}: what is answered {format_age(ages[0])} typically moves by {ages[0].typical or 0.0:+.1%}{stays}."


def format_age(each: Accuracy) -> str:
    """Say an age."""
    return (
        f"{format_duration(each.age.total_seconds())} after its window"
        if each.age
        else "at the end of its window"
    )
