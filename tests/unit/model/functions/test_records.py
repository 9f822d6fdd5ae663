"""How a state is written for people."""

from datetime import UTC, datetime
from decimal import Decimal

from seamline.model.functions.records import format_value


def test_values_are_written_as_they_are_elsewhere():
    """Exact numbers without an exponent, instants in UTC, NULL by its name, and all of them within others."""
    at = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    assert format_value(Decimal("1E+3")) == "1000"
    assert format_value(at) == "2026-01-05T08:30:00Z"
    assert format_value((None, (Decimal("2.50"), "it's"))) == '[NULL, [2.50, "it\'s"]]'
    assert format_value({"a": at, "b": 1.5}) == "{a: 2026-01-05T08:30:00Z, b: 1.5}"
