"""Decimals in plain Python, without the 28 digits to which its own arithmetic rounds."""

from __future__ import annotations

from decimal import Context, Decimal

EXACT = Context(prec=1000, traps=[])
"""Holds every total of 38 digits that there can be."""


def rescale_decimal(value: Decimal | int | str, precision: int, scale: int) -> Decimal:
    """Return a number with all digits of its scale; ValueError where it is none, has more digits, or is too large."""
    found = EXACT.create_decimal(value)
    kept = found.quantize(Decimal(1).scaleb(-scale, context=EXACT), context=EXACT)
    # Other arithmetic than EXACT's rounds to the digits of the thread.
    most = Decimal(1).scaleb(precision - scale, context=EXACT)
    if kept != found or kept.copy_abs() >= most:
        raise ValueError(f"{value} does not fit DECIMAL({precision},{scale})")
    return kept
