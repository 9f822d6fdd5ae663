"""What goes wrong on the way to Kafka, as a plan: a pure function of the flights and a seed."""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from seamline.model.time.intervals import format_utc_instant

OUT_OF_ORDER = 0.02
LATE = 0.005
DUPLICATE = 0.002
BAD = 0.001
HUGE_RECORDS = 2
HUGE_BYTES = 1_000_000

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000

Flight = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sending:
    """One record to send."""

    at_ms: int
    """When to send it by the replay's clock, in milliseconds since 1970; also its Kafka timestamp."""
    partition: int
    """Of the topic."""
    key: bytes
    """The record's key."""
    value: bytes | None
    """The record's value; None for a tombstone."""
    kind: str
    """``flight``, ``out_of_order``, ``late``, ``duplicate``, or ``bad:REASON``, with quarantine's reason."""
    event_id: str | None
    """``CARRIER|FLIGHT|ORIGIN|SCHED_DEP``; None for a bad record."""
    event_time: str | None
    """As the record spells it; None for a bad record."""


@dataclass(frozen=True)
class _Troubles:
    """What happens to flights, by their index."""

    displaced: dict[int, tuple[str, int]]
    """The kind, and the delay in milliseconds."""
    again: dict[int, int]
    """How long after the first the duplicate is sent, in milliseconds."""
    bad: dict[int, int]
    """The number of the sort of bad record that is sent beside it."""


def plan_sendings(
    flights: Iterable[Flight],
    times: Sequence[int],
    partitions: int,
    *,
    mischief: bool = True,
    seed: int = 2013,
) -> Iterator[Sending]:
    """Yield what to send, in the order of the replay's clock: each flight once, and its duplicates.

    ``times`` are the departures of ``flights`` in ms, ascending; flights beyond them are left out.
    Out of order: 1 to 9.5 minutes after its event time. Late: an hour to four days. Duplicate: the same
    bytes 5 s to three days after the first. Bad records are extra: each sort at least once. Nothing is
    sent after the last flight, and nothing happens to the flights of its UTC day.
    """
    troubles = _troubles(times, random.Random(seed)) if mischief and times else _Troubles({}, {}, {})
    waiting: list[tuple[int, int, Sending]] = []
    serial = 0
    for index, (now, flight) in enumerate(zip(times, flights)):  # noqa: B905 - times may be shorter
        while waiting and waiting[0][0] <= now:
            yield heapq.heappop(waiting)[2]
        kind, delay = troubles.displaced.get(index, ("flight", 0))
        first = _sending(flight, now + delay, partitions, kind)
        later = [first] if delay else []
        if index in troubles.again:
            moment = min(first.at_ms + troubles.again[index], times[-1])
            later.append(_sending(flight, moment, partitions, "duplicate"))
        if index in troubles.bad:
            later.append(_bad(flight, now, partitions, troubles.bad[index]))
        for item in later:
            serial += 1
            heapq.heappush(waiting, (item.at_ms, serial, item))
        if not delay:
            yield first
    while waiting:
        yield heapq.heappop(waiting)[2]


@cache
def partition_of(carrier: str, partitions: int) -> int:
    """Return the partition of a carrier's flights; the same on every machine."""
    return int.from_bytes(hashlib.blake2b(carrier.encode()).digest()) % partitions


def _troubles(times: Sequence[int], dice: random.Random) -> _Troubles:
    """Draw who suffers what, among flights early enough for an hour's delay to end before the last flight."""
    end, total = times[-1], len(times)
    calm_from = end // _DAY * _DAY
    exposed = [index for index, at in enumerate(times) if at < calm_from and at + 2 * _HOUR <= end]

    def draw(wanted: float) -> list[int]:
        return dice.sample(exposed, min(len(exposed), round(wanted)))

    late = round(total * LATE)
    moved = draw(total * OUT_OF_ORDER + late)
    displaced = {index: ("out_of_order", dice.randint(_MINUTE, 570_000)) for index in moved[late:]}
    for index in moved[:late]:
        displaced[index] = ("late", min(_spread(dice, _HOUR, 4 * _DAY), end - times[index]))
    again = {index: _spread(dice, 5_000, 3 * _DAY) for index in draw(total * DUPLICATE)}
    bad = draw(max(total * BAD, HUGE_RECORDS + len(SORTS)))
    return _Troubles(displaced, again, {index: number for number, index in enumerate(bad)})


def _spread(dice: random.Random, least: int, most: int) -> int:
    """Draw a delay whose logarithm is even: as many around an hour as around a day."""
    return int(math.exp(dice.uniform(math.log(least), math.log(most))))


def _sending(flight: Flight, at_ms: int, partitions: int, kind: str) -> Sending:
    carrier, moment = flight["carrier"], flight["sched_dep"]
    return Sending(
        at_ms,
        partition_of(carrier, partitions),
        carrier.encode(),
        _json(flight),
        kind,
        f"{carrier}|{flight['flight']}|{flight['origin']}|{moment}",
        moment,
    )


def _bad(flight: Flight, at_ms: int, partitions: int, number: int) -> Sending:
    """Make the ``number``-th bad record, after the pattern of a flight that is sent too."""
    sort = "huge" if number < HUGE_RECORDS else SORTS[(number - HUGE_RECORDS) % len(SORTS)]
    value, reason = _spoiled(flight, sort, datetime.fromtimestamp(at_ms / 1000, UTC))
    carrier = flight["carrier"]
    place = partition_of(carrier, partitions)
    return Sending(at_ms, place, carrier.encode(), value, f"bad:{reason}", None, None)


_CHANGES: dict[str, tuple[dict[str, object], str]] = {
    "word for a number": ({"dep_delay": "late"}, "mistyped field dep_delay"),
    "word for a key": ({"flight": "twelve"}, "mistyped field flight"),
    "null time": ({"sched_dep": None}, "null event time"),
    "before start": ({"sched_dep": "2012-06-01T12:00:00Z"}, "event time before start"),
    "far future": ({"sched_dep": "2099-01-01T00:00:00Z"}, "event time in the future"),
    "strange origin": ({"origin": "XXX"}, "rule known origin"),
}
_BYTES: dict[str, tuple[bytes | None, str]] = {
    "empty": (b"", "empty value"),
    "tombstone": (None, "tombstone"),
    "huge": (b'{"carrier":"' + b"A" * HUGE_BYTES, "malformed json"),
}
SORTS = (*_CHANGES, "near future", "no carrier", "no flight", "cut off", "not utf-8", "empty", "tombstone")
"""Every sort of bad record but the huge one, of which there are HUGE_RECORDS."""


def _spoiled(flight: Flight, sort: str, now: datetime) -> tuple[bytes | None, str]:
    """Return the bytes of a bad record and the reason it must be refused for: exactly one fault each."""
    if sort in _BYTES:
        return _BYTES[sort]
    if sort in _CHANGES:
        change, reason = _CHANGES[sort]
        return _json({**flight, **change}), reason
    if sort == "near future":
        return _json(
            {**flight, "sched_dep": format_utc_instant(now + timedelta(days=2))}
        ), "event time in the future"
    if sort == "cut off":
        return _json(flight)[:-20], "malformed json"
    if sort == "not utf-8":
        return _json({**flight, "tailnum": "N#"}).replace(b"#", b"\xff"), "not utf-8"
    name = sort.removeprefix("no ")
    return _json({field: value for field, value in flight.items() if field != name}), f"missing field {name}"


_json_text = json.JSONEncoder(separators=(",", ":")).encode


def _json(flight: Flight) -> bytes:
    return _json_text(flight).encode()
