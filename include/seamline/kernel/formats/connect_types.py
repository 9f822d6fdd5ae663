"""How Kafka Connect writes what JSON has no type for: moments as numbers, decimals as bytes, a schema beside both."""

from __future__ import annotations

from seamline.kernel.formats.decimals import bind_value_sql, decimal_sql
from seamline.kernel.formats.json import NUMBER, WHOLE
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.model.definition.debezium import UNITS
from seamline.model.types.schema import SqlType

DAYS = (-719_162, 2_932_896)
"""The days of the years 1 to 9999, from 1970."""
MOMENTS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The microseconds of these years, from 1970."""
DECIMAL = "org.apache.kafka.connect.data.Decimal"
CLOCKS = {
    "io.debezium.time.Timestamp": "milliseconds",
    "io.debezium.time.MicroTimestamp": "microseconds",
    "io.debezium.time.NanoTimestamp": "nanoseconds",
    "org.apache.kafka.connect.data.Timestamp": "milliseconds",
}
"""What numbers count, by the name of the type."""
FIELD = {"field": "VARCHAR", "type": "VARCHAR", "name": "VARCHAR", "parameters": {"scale": "VARCHAR"}}
SCHEMA = {"fields": [{"field": "VARCHAR", "fields": [FIELD]}]}
"""The part of an envelope's schema that tells the types of columns."""
TYPED = "list_filter(_envelope.schema.fields, lambda _f: _f.field = 'after')[1].fields"
CODES = (
    f"struct_pack(names := list_transform({TYPED}, lambda _f: _f.field), codes := list_transform({TYPED}, "
    "lambda _f: coalesce(_f.name, _f.type, '') || ':' || coalesce(_f.parameters.scale, '')))"
)
"""SQL of the columns' names and types, each type as ``type:scale``; NULLs where an event has no schema. It is no map:
that would refuse a schema that names a column twice, or one without a name, with an error for all records."""
SCALES = (-76, 76)
"""Scales of numbers of 16 bytes that a DECIMAL may have room for: another would be spelled with as many zeros."""
DIGITS, INVERTED = "0123456789ABCDEF", "FEDCBA9876543210"


def code_sql(name: str) -> str:
    """Write what a schema says of a column's type; NULL where it says nothing."""
    return f"_codes.codes[list_position(_codes.names, {quote_literal(name)})]"


def moment_sql(text: str, unit: str) -> str:
    """Write the moment that is so many units after the beginning of 1970; NULL where no year has it."""
    factor = UNITS[unit]
    number = f"TRY_CAST({text} AS HUGEINT)"
    micros = f"{number} * {factor}" if factor > 0 else f"{number} // {-factor}"
    within = f"_m BETWEEN {MOMENTS[0]} AND {MOMENTS[1]}"
    # A number of a text may be so large that its microseconds are none.
    return bind_value_sql(f"TRY({micros})", "_m", f"CASE WHEN {within} THEN make_timestamptz(_m::BIGINT) END")


def day_sql(text: str) -> str:
    """Write the day that is so many days after the first of 1970; NULL where no year has it."""
    day = f"TRY_CAST({text} AS INTEGER)"
    return f"CASE WHEN {day} BETWEEN {DAYS[0]} AND {DAYS[1]} THEN DATE '1970-01-01' + {day} END"


def coded_moment_sql(found: str, text: str, code: str, other: str) -> str:
    """Write a moment by the type that a schema tells; ``other`` is its value where none does."""
    whens = (
        f"WHEN {quote_literal(name + ':')} THEN {moment_sql(text, unit)}" for name, unit in CLOCKS.items()
    )
    return (
        f"CASE WHEN {code} IS NOT NULL AND {found} IN {WHOLE} THEN CASE {code} {' '.join(whens)} END "
        f"ELSE {other} END"
    )


def coded_decimal_sql(type: SqlType, found: str, text: str, code: str, *, texts: bool) -> str:
    """Write a decimal by the type that a schema tells; where none does, ``texts`` spell one or do not."""
    scale = f"split_part({code}, ':', 2)"
    object = [f"json_extract_string({text}, '$.{each}')" for each in ("value", "scale")]
    spelled = (
        f"CASE WHEN {found} IN {NUMBER} THEN {text} WHEN {found} = 'OBJECT' THEN {unscaled_sql(*object)} "
        f"WHEN {found} <> 'VARCHAR' THEN NULL WHEN starts_with({code}, '{DECIMAL}:') THEN {unscaled_sql(text, scale)} "
        f"WHEN coalesce({code} = 'string:', {str(texts).lower()}) THEN {text} END"
    )
    return bind_value_sql(spelled, "_d", decimal_sql(type, "_d"))


def unscaled_sql(text: str, scale: str) -> str:
    """Write the digits of a number whose bytes are in base64, its point ``scale`` digits from the right.

    NULL where it has more than 16 bytes, or a scale beyond ``SCALES``: no DECIMAL has room for it.
    """
    positive = "TRY_CAST('0x' || _h AS HUGEINT)"
    negative = f"-TRY_CAST('0x' || translate(_h, '{DIGITS}', '{INVERTED}') AS HUGEINT) - 1"
    whole = bind_value_sql(
        f"hex(TRY(from_base64({text})))",
        "_h",
        f"(CASE WHEN left(_h, 1) < '8' THEN {positive} ELSE {negative} END)::VARCHAR",
    )
    digits, sign = "ltrim(_w, '-')", "CASE WHEN starts_with(_w, '-') THEN '-' ELSE '' END"
    padded = f"lpad({digits}, greatest(len({digits}), _s + 1)::INTEGER, '0')"
    pointed = (
        f"{sign} || CASE WHEN _s > 0 THEN left({padded}, len({padded}) - _s) || '.' || right({padded}, _s) "
        f"ELSE {digits} || repeat('0', -_s) END"
    )
    within = f"CASE WHEN _s BETWEEN {SCALES[0]} AND {SCALES[1]} THEN {pointed} END"
    return bind_value_sql(whole, "_w", bind_value_sql(f"TRY_CAST({scale} AS INTEGER)", "_s", within))
