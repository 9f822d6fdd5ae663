"""Texts that spell a number, as DECIMAL: by their own digits, and NULL where one of them would be lost.

DuckDB's own cast rounds what is behind the scale, and gets numbers with an exponent wrong ('-0.030360e3' is -30.30 in
DECIMAL(4,2)): what is cast here has no exponent, and no digit but zeros behind the scale.
"""

from __future__ import annotations

from seamline.model.types.schema import SqlType

DIGITS = 38
EXPONENT = r"([+-]?)(\d*)\.?(\d*)[eE]([+-]?\d+)"
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+"


def decimal_sql(type: SqlType, text: str) -> str:
    """Write the DECIMAL that a text spells: sign, digits, point, exponent, nothing else; NULL where it has no room."""
    shifted = f"CASE WHEN {fits_scale_sql(type, '_shifted')} THEN TRY_CAST(_shifted AS {type.duckdb}) END"
    return (
        f"CASE WHEN {fits_scale_sql(type, text)} THEN TRY_CAST({text} AS {type.duckdb}) "
        f"WHEN regexp_full_match({text}, '{NUMBER}') "
        f"THEN {bind_value_sql(without_exponent_sql(text), '_shifted', shifted)} END"
    )


def fits_scale_sql(type: SqlType, text: str) -> str:
    """Write whether a text is a number without an exponent, and with zeros only behind the scale."""
    whole, behind = rf"\d+(\.\d{{0,{type.scale}}}0*)?", rf"\.(\d{{1,{type.scale}}}0*|0+)"
    if not type.scale:
        behind = r"\.0+"
    return f"regexp_full_match({text}, '[+-]?({whole}|{behind})')"


def without_exponent_sql(text: str) -> str:
    """Write a number that has an exponent without it; NULL where that takes more digits than a DECIMAL can have."""
    parts = f"regexp_extract({text}, '{EXPONENT}', ['sign', 'whole', 'fraction', 'exponent'])"
    digits, zeros = "ltrim(_p.whole || _p.fraction, '0')", "len(_p.whole || _p.fraction)"
    point = f"len(_p.whole) - {zeros} + len({digits}) + TRY_CAST(_p.exponent AS INTEGER)"
    placed = (
        f"CASE WHEN _n.digits = '' THEN '0' WHEN _n.point NOT BETWEEN -{DIGITS} AND {DIGITS} THEN NULL "
        "WHEN _n.point <= 0 THEN _n.sign || '0.' || repeat('0', -_n.point) || _n.digits "
        "WHEN _n.point >= len(_n.digits) THEN _n.sign || _n.digits || repeat('0', _n.point - len(_n.digits)) "
        "ELSE _n.sign || left(_n.digits, _n.point) || '.' || substr(_n.digits, _n.point + 1) END"
    )
    number = f"{{'sign': _p.sign, 'digits': {digits}, 'point': {point}}}"
    return bind_value_sql(bind_value_sql(parts, "_p", number), "_n", placed)


def bind_value_sql(value: str, name: str, body: str) -> str:
    """Give a value a name within an expression: what is spelled once is planned once, in every query of the kernel."""
    return f"list_transform([{value}], lambda {name}: {body})[1]"
