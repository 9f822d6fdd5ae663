"""What producers say that they have sent: a topic of statements, with which what was read is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field


@dataclass(frozen=True)
class Counts:
    """A topic in which producers say how many records they have sent, and what a certificate makes of that.

    A statement is a JSON object with exactly four fields: ``{"producer": "shop-eu", "from": "2026-01-01T00:00:00Z",
    "to": "2026-01-02T00:00:00Z", "count": 1234}``. It says how many records of event times in [from, to) this producer
    has sent; of a source with ``event_id``, how many events, each once. It is sent when that number is final. One that
    overlaps earlier ones of its producer replaces them. Send all of a producer's to one partition: use its name as key.
    """

    topic: str
    """The topic of the statements, on the source's connection."""
    producer: str = ""
    """The column that has the name of a record's producer; "" compares all records with what all producers say."""
    producers: Sequence[str] = ()
    """Producers that are expected from the first interval on; others are from the first that they say something of."""
    required: bool = False
    """Whether an interval is certified only if all expected producers say of it what was read."""
    grace: str = ""
    """For how long after its end, as a duration, an interval waits for statements that are missing; "" for ever. One
    that is there and does not agree is always waited for."""
    remember: str = "7 days"
    """For how long, in event time, a producer that has made statements is expected to make more."""
    origin: Origin = declare_origin_field()
