"""Texts that spell a number, as DECIMAL: by their own digits, and NULL where one of them would be lost.

DuckDB's own cast rounds what is behind the scale, and gets numbers with an exponent wrong ('-0.030360e3' is -30.30 in
DECIMAL(4,2)): what is cast here has no exponent, and no digit but zeros behind the scale.
"""

from __future__ import annotations

from seamline.model.schema import SqlType

DIGITS = 38
EXPONENT = r"([+-]?)(\d*)\.?(\d*)[eE]([+-]?\d+)"
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+"


def decimal(type: SqlType, text: str) -> str:
    """Write the DECIMAL that a text spells: sign, digits, point, exponent, nothing else; NULL where it has no room."""
    shifted = moved(text)
    spelled = f"regexp_full_match({text}, '{NUMBER}') AND {fits(type, shifted)}"
    return (
        f"CASE WHEN {fits(type, text)} THEN TRY_CAST({text} AS {type.duckdb}) "
        f"WHEN {spelled} THEN TRY_CAST({shifted} AS {type.duckdb}) END"
    )


def fits(type: SqlType, text: str) -> str:
    """Write whether a text is a number without an exponent, and with zeros only behind the scale."""
    whole, behind = rf"\d+(\.\d{{0,{type.scale}}}0*)?", rf"\.(\d{{1,{type.scale}}}0*|0+)"
    if not type.scale:
        behind = r"\.0+"
    return f"regexp_full_match({text}, '[+-]?({whole}|{behind})')"


def moved(text: str) -> str:
    """Write a number that has an exponent without it; NULL where that takes more digits than a DECIMAL can have."""
    sign, whole, fraction, exponent = (f"regexp_extract({text}, '{EXPONENT}', {at})" for at in range(1, 5))
    digits = f"ltrim({whole} || {fraction}, '0')"
    zeros = f"(len({whole} || {fraction}) - len({digits}))"
    point = f"(len({whole}) - {zeros} + TRY_CAST({exponent} AS INTEGER))"
    return (
        f"CASE WHEN {digits} = '' THEN '0' WHEN {point} NOT BETWEEN -{DIGITS} AND {DIGITS} THEN NULL "
        f"WHEN {point} <= 0 THEN {sign} || '0.' || repeat('0', -{point}) || {digits} "
        f"WHEN {point} >= len({digits}) THEN {sign} || {digits} || repeat('0', {point} - len({digits})) "
        f"ELSE {sign} || left({digits}, {point}) || '.' || substr({digits}, {point} + 1) END"
    )
