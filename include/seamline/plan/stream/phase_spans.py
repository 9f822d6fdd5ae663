"""The spans of an epoch in a trace: the whole of it, and its phases one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seamline.model.protocol.epoch import Epoch

BILLION = 1_000_000_000


@dataclass(frozen=True)
class PhaseSpan:
    """A span of time that something took."""

    name: str
    """What took it."""
    start: int
    """When it began, in nanoseconds since 1970."""
    end: int
    """When it ended."""
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    """What else is known of it."""


def list_epoch_spans(
    pipeline: str, epoch: Epoch, seconds: Mapping[str, float], now: int
) -> tuple[PhaseSpan, ...]:
    """List the spans of an epoch that has ended ``now``, the whole of it first; its phases are in their order."""
    at = now - sum(round(each * BILLION) for each in seconds.values())
    whole = PhaseSpan(
        "epoch",
        at,
        now,
        {
            "seamline.pipeline": pipeline,
            "seamline.epoch": epoch.number,
            "seamline.epoch.kind": epoch.kind.value,
            "seamline.token": epoch.token,
            "seamline.offsets": sum(map(len, epoch.ranges)),
            "seamline.rows": epoch.rows,
            "seamline.refused": sum(epoch.refused.values()),
        },
    )
    found = [whole]
    for phase, took in seconds.items():
        found.append(PhaseSpan(f"epoch.{phase}", at, at + round(took * BILLION)))
        at = found[-1].end
    return tuple(found)
