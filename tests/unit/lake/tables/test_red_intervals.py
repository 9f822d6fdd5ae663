"""Which intervals are red: those whose newest certificate did not pass, unless it may be provisional."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import Certificates, list_red_intervals
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.time.intervals import Interval

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Interval(NOW, NOW + timedelta(days=1))


def judge(generation: str, *, passed: bool, minute: int = 0, provisional: bool = False) -> Certificate:
    """Judge a generation of the day."""
    at = NOW + timedelta(minutes=minute)
    checks = (Check("all", passed, ""),)
    return Certificate("sales", "abc", generation, DAY, 1, "run", "", at, checks, provisional=provisional)


GREEN, RED = judge("a", passed=True), judge("b", passed=False)
LATER_GREEN = judge("c", passed=True, minute=1)
PROVISIONAL = judge("d", passed=False, minute=2, provisional=True)


@pytest.mark.parametrize(
    "some", [(GREEN, RED), (RED, LATER_GREEN), (RED, PROVISIONAL), (GREEN, RED, LATER_GREEN)]
)
def test_the_newest_certificate_decides_in_whatever_order_they_were_written(
    some: Sequence[Certificate], tmp_path: Path
) -> None:
    """Of two of one instant it is the last that ``Certificates.of`` lists."""
    for number, written in enumerate(permutations(some)):
        layout = Layout(tmp_path / str(number), "shop")
        table = Certificates.ensure(layout)
        for each in written:
            table.append([each])
        red = {("sales/abc", DAY.id)} if not table.of()[-1].good else set()
        assert list_red_intervals(layout) == red
