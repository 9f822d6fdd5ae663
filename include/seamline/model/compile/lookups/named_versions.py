"""The versions of look-ups that a log names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seamline.model.compile.evolution import is_compatible_version
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import list_moving_ranges


def in_force(epochs: Iterable[Epoch], record_version: str) -> Mapping[str, str]:
    """Return the versions of look-ups that the last epoch of a record version had; none before the first."""
    found: Mapping[str, str] = {}
    for epoch in epochs:
        if epoch.lookups and is_compatible_version(epoch.record_version, record_version):
            found = epoch.lookups
    return found


def named_last(epochs: Sequence[Epoch], record_version: str) -> Mapping[str, str]:
    """Return the versions that the last epoch with records names; none if it had another record version."""
    for epoch in reversed(epochs):
        if epoch.kind is EpochKind.READ and list_moving_ranges(epoch):
            return epoch.lookups if is_compatible_version(epoch.record_version, record_version) else {}
    return {}
