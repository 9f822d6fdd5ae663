"""Totals of long decimals in DuckDB: what is beyond 38 digits is carried beside, so that no addition overflows.

A total is ``carry * 10**38 + sum`` in units of its last digit, both of one sign; a carry that is nothing is NULL. So
equal totals are equal states, and the sum alone is the total wherever a DECIMAL holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.measures.steps import Finish, Steps, quote_identifier, scratch_column_name
from seamline.model.compile.compiled_pipeline import CompiledMeasure
from seamline.model.measures import Part
from seamline.model.measures.plain import DIGITS, SHORT
from seamline.model.types.decimals import EXACT
from seamline.model.types.schema import parse_type

CUT = 10**18
"""Long values are cut there: sums of either part have room for 10**18 of them."""
LIMIT = 10**DIGITS
ROOM = 10 ** (DIGITS - 1)
"""Three sums below it add up to fewer than ``DIGITS`` digits and one."""
COUNTED = "DECIMAL(38,0)"


def sum_decimals(
    measure: CompiledMeasure, total: Part, carry: Part, value: str, before: str = "NULL::BIGINT"
) -> Steps:
    """Add up decimals, and the carries ``before``, whatever their order.

    Values of up to ``SHORT`` digits are added as they are. Longer ones are cut in two whole numbers, which are added
    apart. Where no sum may overflow they are put together in SQL, as units; what is left is done by Python.
    """
    scale = parse_type(total.type, "").scale
    names = {name: scratch_column_name(measure, name) for name in ("short", "high", "low", "before")}
    value = f"{value}::{total.type}"
    least = f"{Decimal(1).scaleb(SHORT - scale):f}::{total.type}"
    sums = {
        "short": f"sum(CASE WHEN abs({value}) < {least} THEN {value} END)::{total.type}",
        "high": f"sum(CASE WHEN abs({value}) >= {least} THEN {units_of(value)} // {CUT} END)::{COUNTED}",
        "low": f"sum(CASE WHEN abs({value}) >= {least} THEN {units_of(value)} % {CUT} END)::{COUNTED}",
        "before": f"sum({before})::{COUNTED}",
    }
    short, high, low, carries = map(quote_identifier, names.values())
    units = f"coalesce({units_of(short)}, 0)"
    fits = f"abs({units}) < {ROOM} AND abs({high}) < {ROOM // CUT} AND abs({low}) < {ROOM}"
    whole = f"({units} + {high}::HUGEINT * {CUT} + {low}::HUGEINT)::{COUNTED}"
    columns = {**names, "units": scratch_column_name(measure, "units")}
    apart = "{" + ", ".join(f"'{name}': {quote_identifier(column)}" for name, column in columns.items()) + "}"
    of_total, of_carry = scratch_column_name(measure, "of_total"), scratch_column_name(measure, "of_carry")
    return Steps(
        {names[name]: text for name, text in sums.items()},
        [
            {columns["units"]: f"CASE WHEN coalesce({carries}, 0) = 0 AND {fits} THEN {whole} END"},
            {of_total: apart, of_carry: apart},
        ],
        {total.name: (of_total, total_of(scale)), carry.name: (of_carry, carry_of)},
    )


def units_of(value: str) -> str:
    """Write a decimal as the number of units of its last digit."""
    return f"replace({value}::VARCHAR, '.', '')::HUGEINT"


def total_of(scale: int) -> Finish:
    """Make the totals of groups, as far as DECIMALs hold them, of their sums."""

    def finished(sums: pa.ChunkedArray) -> pa.Array:
        units = cast_units_to_decimals(pc.struct_field(sums, "units").combine_chunks(), scale)
        found = [decimal_from_units(total, scale) for total, _ in split_long_totals(sums, scale)]
        return fill_masked_values(pc.coalesce(units, pc.struct_field(sums, "short")), is_long(sums), found)

    return finished


def carry_of(sums: pa.ChunkedArray) -> pa.Array:
    """Make the carries of groups of their sums."""
    scale = pc.struct_field(sums, "short").type.scale
    found = [carry or None for _, carry in split_long_totals(sums, scale)]
    return fill_masked_values(pa.nulls(len(sums), pa.int64()), is_long(sums), found)


def cast_units_to_decimals(units: pa.Array, scale: int) -> pa.Array:
    """Read units as decimals of ``scale`` digits behind the point: Arrow keeps both by the same bytes."""
    type = pa.decimal128(DIGITS, scale)
    return pa.Array.from_buffers(type, len(units), units.buffers(), units.null_count, units.offset)


def is_long(sums: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which groups have long values, or carries, and do not fit in one sum of units."""
    long = pc.or_(*(pc.is_valid(pc.struct_field(sums, name)) for name in ("high", "before")))
    return pc.and_(long, pc.is_null(pc.struct_field(sums, "units")))


def split_long_totals(sums: pa.ChunkedArray, scale: int) -> Iterator[tuple[int, int]]:
    """Return what stays and what is carried of the groups that are long; in units."""
    for each in sums.filter(is_long(sums)).to_pylist():
        short, high, low, before = (each[name] or Decimal(0) for name in ("short", "high", "low", "before"))
        whole = int(EXACT.scaleb(short, scale)) + int(low) + int(high) * CUT + int(before) * LIMIT
        carry, rest = divmod(abs(whole), LIMIT)
        yield (rest, carry) if whole > 0 else (-rest, -carry)


def decimal_from_units(units: int, scale: int) -> Decimal:
    """Return a number of units as the decimal that it is."""
    return EXACT.scaleb(Decimal(units), -scale)


def fill_masked_values(others: pa.ChunkedArray, where: pa.ChunkedArray, found: list[Any]) -> pa.Array:
    """Fill the places of a mask with the values that were found."""
    whole = others.combine_chunks() if isinstance(others, pa.ChunkedArray) else others
    if not found:
        return whole
    return pc.replace_with_mask(whole, where.combine_chunks(), pa.array(found, others.type))


def null_overflowed_totals(total: pa.ChunkedArray, carry: pa.ChunkedArray) -> pa.Array:
    """Return the totals that a DECIMAL holds, and NULL for the others."""
    return replace_overflowed_totals(total, carry, total, lambda _: None)


def cast_totals_to_doubles(total: pa.ChunkedArray, carry: pa.ChunkedArray) -> pa.Array:
    """Return totals as doubles."""
    return replace_overflowed_totals(total, carry, total.cast(pa.float64()), float)


def format_overflowed_totals(total: pa.ChunkedArray, carry: pa.ChunkedArray) -> pa.Array:
    """Format the totals that no DECIMAL holds, and NULL for the others."""
    return replace_overflowed_totals(
        total, carry, pa.nulls(len(total), pa.string()), lambda whole: f"{whole:f}"
    )


def replace_overflowed_totals(
    total: pa.ChunkedArray, carry: pa.ChunkedArray, others: pa.ChunkedArray, made: Callable[[Decimal], Any]
) -> pa.Array:
    """Put what is made of the exact total where a DECIMAL does not hold it, and ``others`` elsewhere."""
    where = pc.not_equal(pc.fill_null(carry, 0), 0)
    both = zip(total.filter(where).to_pylist(), carry.filter(where).to_pylist(), strict=True)
    return fill_masked_values(
        others, where, [made(EXACT.add(rest, expand_carry(rest, carry))) for rest, carry in both]
    )


def expand_carry(rest: Decimal, carry: int) -> Decimal:
    """Return what a carry stands for beside the rest of a total."""
    return EXACT.scaleb(Decimal(carry), DIGITS + int(rest.as_tuple().exponent))
