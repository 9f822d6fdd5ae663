"""What one caller may ask: an answer that takes too long is broken off."""

from __future__ import annotations

import pytest

from seamline.lake.scans import connection
from seamline.model.errors import TooSlow
from seamline.web.limits import within

ENDLESS = "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"


def test_a_query_that_takes_too_long_is_broken_off() -> None:
    """And the thread's connection goes on to serve the next."""
    with pytest.raises(TooSlow, match=r"no answer within 0.2 s"), within(0.2):
        connection().sql(ENDLESS).fetchall()
    with within():
        assert connection().sql("SELECT 42").fetchall() == [(42,)]
