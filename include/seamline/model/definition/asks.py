"""Rows that get an answer of another system, which is asked about each of them once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.user_code import name_of

ROW = {
    "topic_id": "STRING NOT NULL",
    "partition": "INT NOT NULL",
    "offset": "BIGINT NOT NULL",
    "at": "TIMESTAMP NOT NULL",
    "version": "STRING NOT NULL",
}
"""Columns of the record of an answer that say what was asked about: a row's place in Kafka, its event time, and the
``version`` of the question. Each stands behind the name of the ``Ask`` and an underscore."""
TOLD = {"error": "STRING", "tries": "INT", "seconds": "DOUBLE"}
"""Those that say how it went: why there is no answer, how often the system was called, and how long the last call
took."""


@dataclass(frozen=True)
class NoAnswer:
    """What a function that asks returns in the place of an answer that there will not be: it is not asked again."""

    reason: str
    """Why there is none, which becomes the error of the row."""


@dataclass(frozen=True)
class Ask:
    """Rows of a source, each with the answer of another system, once that is there.

    A row is asked about when its epoch is committed, and never waited for: it counts in views of the source at once,
    and in views of the answered rows from the epoch on that reads the answer. A call may be made more than once; of
    each row one answer is kept, as a record of a topic of its own, and no build and no restart asks again.

    An answered row has the columns of both, each with a name and an underscore before it: ``payments_amount`` of the
    source, ``scored_risk`` of the answer. Where there is no answer, the record in the topic says why: its columns,
    ``scored_error`` among them, are rows of a source ``scored_answers``.
    """

    name: str
    """The name of the answered rows, which ``View(of=)`` takes."""
    of: str
    """The name of the source whose rows are asked about."""
    by: str | Callable[..., Any]
    """The function that asks, ``module:function``: ``async def ask(requests)`` gets a list of distinct requests, each
    a dict, and returns as many answers in the same order: a dict of the ``columns``, or ``NoAnswer(reason)``."""
    request: Mapping[str, str]
    """What a request has: an expression on the row's columns, by name. Equal requests are asked once, together."""
    columns: Sequence[str]
    """The columns of an answer: ``name`` for text, else ``name TYPE``."""
    when: str = ""
    """The rows that are asked about; all if empty."""
    version: str = ""
    """Any text; another one says that earlier answers do not count any more."""
    batch: int = 1
    """The most requests in one call."""
    at_once: int = 64
    """The most calls at one time."""
    per_second: int = 0
    """The most requests in a second; 0 for no bound."""
    timeout: str = "2 seconds"
    """How long one call may take, as a duration."""
    retries: int = 2
    """How often a call that has failed is made again, before the failure is what is recorded."""
    fresh: str = ""
    """For how long, as a duration, an answer is given to equal requests without asking; "" for not at all."""
    topic: str = ""
    """The topic of the answers, to which nobody else writes; "" for ``PIPELINE.NAME.answers``."""
    side: Mapping[str, str] = field(default_factory=dict)
    """Named sides of the answers: the condition by name, such as ``scored_error IS NOT NULL``."""
    origin: Origin = declare_origin_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", name_of(self.by))

    @property
    def left(self) -> str:
        """The name of the source whose rows are asked about, as a join calls it."""
        return self.of

    @property
    def right(self) -> str:
        """The name of the source of the answers."""
        return f"{self.name}_answers"

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return self.left, self.right

    def named(self, column: str) -> str:
        """Name a column of an answer's record."""
        return f"{self.name}_{column}"
