"""The parent of Python workers: what it sets before numpy is imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seamline.spark.daemon import SLOW_SORTS, avoid_slow_sorts

NAME = "NPY_DISABLE_CPU_FEATURES"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("vendor_id : AuthenticAMD\nflags : avx2 avx512f avx512vl\n", SLOW_SORTS),
        ("vendor_id : AuthenticAMD\nflags : avx2 avx512f avx512_vp2intersect\n", None),
        ("vendor_id : AuthenticAMD\nflags : avx2\n", None),
        ("vendor_id : GenuineIntel\nflags : avx2 avx512f\n", None),
    ],
)
def test_numpy_does_not_sort_with_what_amd_runs_in_microcode(
    said: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = tmp_path / "cpuinfo"
    cpu.write_text(said)
    monkeypatch.setenv(NAME, "")
    monkeypatch.delenv(NAME)
    avoid_slow_sorts(cpu)
    assert os.environ.get(NAME) == expected


def test_what_a_user_has_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = tmp_path / "cpuinfo"
    cpu.write_text("vendor_id : AuthenticAMD\nflags : avx512f\n")
    monkeypatch.setenv(NAME, "AVX512_SPR")
    avoid_slow_sorts(cpu)
    assert os.environ[NAME] == "AVX512_SPR"
    avoid_slow_sorts(tmp_path / "not there")
