"""Records as somebody may send them: their bytes, and what they mean, made from a seed and from no code of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TEXTS = (
    "a", "b", "", " ", "A", "ä", "a\u0308", "NULL", "null", "'", '"', "\\", "%_", "a/b=c", "\n", "\t;--", "0", "1e5",
    "true", "2024-01-01", "\u202e", "🎈", "\U0010ffff", "x" * 70, "ﬀ" * 33, "${x}", "{}", "[1]",
)  # fmt: skip
WHOLE = (0, 1, 2, 3, -1, -7, 10, 2**31 - 1, -(2**31))
LARGE = (*WHOLE, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
REAL = (0.0, 1.5, -2.25, 0.1, 0.30000000000000004, 1e-300, 1e300, -1e-300, 123456.789, 5e-324)
DATES = (date(2024, 1, 1), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31))
CENTS = ("0", "1", "-1", "0.01", "-0.99", "12.5", "100.00", "99999.99", "-123456.78")
MONEY = (*CENTS, "1234567890123456.78", "-9999999999999999.99", "1e3", "1.5E-1", "9007199254740993")
FINE = ("0", "1", "-1", "0.5", "0.000001", "-12.125", "999.999")
LARGEST = "99999999999999999999.999999999999999999"
FINEST = (*FINE, "0.123456789012345678", "0.0000001", "1e-18", "12345678901234567.0", LARGEST, f"-{LARGEST}")
POOLS: Mapping[str, Sequence[Any]] = {
    "STRING": TEXTS,
    "INT": WHOLE,
    "BIGINT": LARGE,
    "DOUBLE": REAL,
    "BOOLEAN": (True, False),
    "DATE": DATES,
    "DECIMAL(18,2)": CENTS,
    "DECIMAL(38,18)": FINE,
}
EXACT: Mapping[str, Sequence[str]] = {"DECIMAL(18,2)": MONEY, "DECIMAL(38,18)": FINEST}
"""Decimals that no double holds, or that are spelled in an unusual way."""
BAD = ("empty", "malformed", "no object", "no id", "no time", "word for number", "too large", "far ahead")


@dataclass(frozen=True)
class Record:
    """A record that was sent: what it means (``row``, by column), or None where it must be refused."""

    lane: int
    value: bytes
    at: datetime
    row: Mapping[str, Any] | None


@dataclass(frozen=True)
class Column:
    """A column of the source with the few values that its records have, as they are spelled."""

    name: str
    type: str
    pool: tuple[Any, ...]

    def draw(self, chance: Random) -> Any:
        """Draw a value, or None."""
        return None if chance.random() < 0.1 else chance.choice(self.pool)


def meant(type: str, spelled: Any) -> Any:
    """Return the value that a spelling means."""
    return Decimal(spelled) if type.startswith("DECIMAL") and spelled is not None else spelled


def token(type: str, spelled: Any) -> str:
    """Write a value as JSON; a decimal by its own digits."""
    if spelled is not None and type.startswith("DECIMAL"):
        return str(spelled)
    return json.dumps(spelled.isoformat() if isinstance(spelled, date) else spelled)


def written(members: Mapping[str, str], chance: Random) -> bytes:
    """Write a JSON object; members in any order, with any white space."""
    names = list(members)
    chance.shuffle(names)
    gap = chance.choice(["", " ", "\n"])
    return ("{" + f",{gap}".join(f"{json.dumps(name)}:{gap}{members[name]}" for name in names) + "}").encode()


def drawn(
    columns: Sequence[Column], time: str, id: str, *, day: int, count: int, first: int, chance: Random
) -> list[Record]:
    """Draw records of about one day since START; ids are from ``first`` on, some of them twice."""
    return [record(columns, time, id, day=day, number=first + at, chance=chance) for at in range(count)]


def record(columns: Sequence[Column], time: str, id: str, *, day: int, number: int, chance: Random) -> Record:
    """Draw one record."""
    late = day - 1 if day and chance.random() < 0.2 else day
    at = (
        START
        + late * DAY
        + chance.choice([timedelta(0), timedelta(microseconds=chance.randrange(86_400_000_000))])
    )
    if chance.random() < 0.3:
        # Close to the borders of hours and days, where windows and sessions meet.
        at = at.replace(
            minute=chance.choice([0, 0, 59, 30]), second=0, microsecond=chance.choice([0, 1, 999_999])
        )
    number -= chance.randrange(3) if number > 3 and chance.random() < 0.15 else 0
    spelled = {each.name: each.draw(chance) for each in columns}
    types = {each.name: each.type for each in columns}
    members = {name: token(types[name], value) for name, value in spelled.items() if value is not None}
    members |= {name: "null" for name, value in spelled.items() if value is None and chance.random() < 0.5}
    members |= {time: json.dumps(at.isoformat().replace("+00:00", "Z")), id: str(number)}
    lane = chance.randrange(4)
    if chance.random() < 0.08:
        return Record(lane, spoilt(members, time, id, chance), at, None)
    row = {name: meant(types[name], value) for name, value in spelled.items()}
    return Record(lane, written(members, chance), at, {**row, time: at, id: number})


def spoilt(members: dict[str, str], time: str, id: str, chance: Random) -> bytes:
    """Write a record that must be refused."""
    match chance.choice(BAD):
        case "empty":
            return b""
        case "malformed":
            return written(members, chance)[:-1]
        case "no object":
            return b"[1, 2]"
        case "no id":
            members.pop(id)
        case "no time":
            members[time] = "null"
        case "word for number":
            members[id] = '"many"'
        case "too large":
            members[id] = "9223372036854775808"
        case _:
            members[time] = '"2031-01-01T00:00:00Z"'
    return written(members, chance)
