"""Every pipeline on one line: its stream, how far it is certified, what is owed and what is wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from seamline.lake.storage.layout import definitions_folder, locate_tables
from seamline.web.glance.card_halves import ANSWERS, DUE, STREAM, AnswersHalf, Key, StreamHalf, load_half
from seamline.web.glance.card_reader import CardReader
from seamline.web.glance.kept_parts import KeptParts, Part


@dataclass(frozen=True)
class Card:
    """A pipeline at a glance."""

    name: str
    """The pipeline's."""
    stream: StreamHalf | None
    """Its stream; None until it was read."""
    answers: AnswersHalf | None
    """Its answers; None until they were read."""
    age: float
    """How many seconds ago the older half was read."""

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return what is wrong, in sentences."""
        return tuple(alarm for half in (self.stream, self.answers) if half for alarm in half.alarms)

    @property
    def words(self) -> str:
        """Return what a filter finds it by."""
        found = ["alarms"] if self.alarms else []
        found += ["owing"] if self.answers and self.answers.debts else []
        found += [self.stream.actual] + (["trouble"] if not self.stream.fine else []) if self.stream else []
        return " ".join([self.name, *found])


@cache
def kept() -> KeptParts[Key, StreamHalf | AnswersHalf]:
    """Return what this process keeps of all pipelines."""
    return KeptParts(load_half, lambda key: DUE[key[0]], open_reader=CardReader)


def load_pipeline_cards(names: Sequence[str]) -> list[Card]:
    """Load the cards of pipelines; Kafka is not asked, so that a broker that is down keeps nobody waiting."""
    folder = str(definitions_folder())
    places = {name: f"{folder} {locate_tables(name).table('')}" for name in names}
    keys: list[Key] = [(half, places[name], name) for half in DUE for name in names]
    found, now = kept().show(keys), time.monotonic()
    return [join_halves(name, places[name], found, now) for name in names]


def join_halves(
    name: str, place: str, found: Mapping[Key, Part[StreamHalf | AnswersHalf]], now: float
) -> Card:
    """Make a card of the halves that are known."""
    one, other = found.get((STREAM, place, name)), found.get((ANSWERS, place, name))
    stream, answers = one and one.value, other and other.value
    return Card(
        name,
        stream if isinstance(stream, StreamHalf) else None,
        answers if isinstance(answers, AnswersHalf) else None,
        now - min((each.at for each in (one, other) if each), default=now),
    )
