"""Snapshots of tails that are written after each epoch, and not beside the next ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seamline.spark.stream.derived import saved_tails
from seamline.spark.stream.derived.fold_process import FoldProcess


def save_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a stream write snapshots after each epoch that has a watermark, and wait for them."""
    monkeypatch.setattr(saved_tails, "EVERY", 0.0)
    monkeypatch.setattr(saved_tails, "PER_KEY", 0.0)
    save = FoldProcess.save

    def saved(tails: FoldProcess, paths: Sequence[str]) -> int:
        found = save(tails, paths)
        assert tails.find_saved(wait=True) == ""
        return found

    monkeypatch.setattr(FoldProcess, "save", saved)
