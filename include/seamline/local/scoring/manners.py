"""What a scoring service answers, and how it misbehaves: pure functions of a request and a seed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from seamline.model.errors import BadRange

REFUSAL = "the user is unknown"
"""Why a request is refused."""
WRONG = "high"
"""The risk in an answer of another type."""
SHARES = ("slow", "wrong", "refuses", "fails")
TAKEN: Mapping[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}
"""The classes of values that a setting takes, by the class of its default."""


class Asked(NamedTuple):
    """A request: a payment whose risk is asked for."""

    user: str
    """Who pays."""
    amount: str
    """How much, as text, so that it keeps its digits."""

    @property
    def name(self) -> str:
        """The request as counts name it: ``ada 12.50``."""
        return f"{self.user} {self.amount}"


@dataclass(frozen=True)
class Manners:
    """How a service behaves; each share, in [0, 1], is of distinct requests, drawn by the seed and the request.

    Raises BadRange for a share outside [0, 1] and for seconds that are negative.
    """

    seed: int = 0
    """Of all that is drawn."""
    latency: float = 0.02
    """Seconds that a call takes."""
    slow: float = 0.0
    """The share whose calls take ``slow_for``."""
    slow_for: float = 5.0
    """Seconds that a call takes that has a slow request."""
    wrong: float = 0.0
    """The share that is answered with a risk that is text."""
    refuses: float = 0.0
    """The share that is refused, whatever else is drawn."""
    fails: float = 0.0
    """The share that makes the first call with it fail: 503."""
    away: bool = False
    """Whether calls get no answer: the connection is closed."""

    def __post_init__(self) -> None:
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise BadRange(f"{name} is {getattr(self, name)}: write a share from 0 to 1.")
        for name in ("latency", "slow_for"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadRange(f"{name} is {getattr(self, name)}, which is no number of seconds.")

    def changed_by(self, said: Mapping[str, Any]) -> Manners:
        """Return these with other settings; BadRange for one that there is not, or of another type."""
        known = {each.name: TAKEN[type(each.default)] for each in fields(self)}
        for name, value in said.items():
            if type(value) not in known.get(name, ()):
                raise BadRange(
                    f"{name} = {value!r} is no setting.", hint=f"the settings are {', '.join(known)}."
                )
        return replace(self, **said)

    def answer(self, asked: Asked) -> dict[str, Any]:
        """Answer a request."""
        if self.draws("refuses", asked):
            return {"refused": REFUSAL}
        return {"risk": WRONG if self.draws("wrong", asked) else risk_of(*asked, self.seed)}

    def seconds(self, requests: Iterable[Asked]) -> float:
        """Return how many seconds a call takes."""
        return self.slow_for if any(self.draws("slow", each) for each in requests) else self.latency

    def draws(self, share: str, asked: Asked) -> bool:
        """Tell whether a request is of a share, such as ``wrong``; smaller shares are within larger ones."""
        bound: float = getattr(self, share)
        return draw(share, *asked, self.seed) < bound


def risk_of(user: str, amount: str, seed: int) -> float:
    """Return the risk of a payment, in [0, 1] with four digits."""
    return round(draw("risk", user, amount, seed), 4)


def draw(what: str, user: str, amount: str, seed: int) -> float:
    """Draw a number in [0, 1) for a request; the same on every machine."""
    drawn = hashlib.blake2b(json.dumps([what, user, amount, seed]).encode(), digest_size=6).digest()
    return int.from_bytes(drawn) / 2**48
