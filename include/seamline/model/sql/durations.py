"""Durations and numbers as SQL writes them, and as a definition has them."""

from __future__ import annotations

import math
import re

from seamline.model.sql.reader import Reader
from seamline.model.sql.tokens import TokenKind
from seamline.model.time.intervals import UNITS, parse_duration

SAMPLE = "write INTERVAL '10 minutes', or INTERVAL '10' MINUTE."
UNIT_WORDS = {**{unit.upper(): unit for unit in UNITS}, **{f"{unit.upper()}S": unit for unit in UNITS}}
WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
NUMBER = re.compile(
    r"([0-9]{1,300})|[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+|[0-9]+[eE][+-]?[0-9]+", re.ASCII
)


def read_interval(reader: Reader) -> str:
    """Read ``INTERVAL '10' MINUTE`` and return "10 minutes"; a text with its unit, or without the word, stays."""
    token = reader.next
    reader.expect("INTERVAL", hint=SAMPLE)
    amount = reader.next
    is_plain = amount.kind is TokenKind.NUMBER
    length = reader.take().text if is_plain else reader.string("a length of time")
    if not WHOLE.fullmatch(length.strip()):
        reader.attempt(token, lambda: parse_duration(length, zero=True))
        return length
    unit = UNIT_WORDS.get(reader.next.word)
    if unit is None:
        reader.fail(f"{reader.next.shown} is not a unit of time.", f"{SAMPLE} Units are {', '.join(UNITS)}.")
    reader.take()
    number = int(length)
    if number == 0:
        return f"0 {unit}s"
    text = f"{number} {unit}{'' if number == 1 else 's'}"
    reader.attempt(token, lambda: parse_duration(text))
    return text


def read_number(reader: Reader, what: str) -> int | float:
    """Read a number, whole or with a point, and with a minus before it or not."""
    token = reader.next
    sign = -1 if reader.accept_symbol("-") else 1
    found = NUMBER.fullmatch(reader.next.text) if reader.next.kind is TokenKind.NUMBER else None
    if found is None:
        reader.fail(f"{reader.next.shown} is not {what}.", "write a number, such as 10 or 0.95.", token)
    text = reader.take().text
    number = int(text) if found[1] else float(text)
    if math.isinf(number):
        reader.fail(f"{text} is too large.", "write a number that a DOUBLE can hold.", token)
    return sign * number
