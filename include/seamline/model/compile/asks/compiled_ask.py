"""A question to another system made ready for the engines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta

from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.definition.asks import Ask
from seamline.model.expressions import Expression
from seamline.model.types.schema import Field


@dataclass(frozen=True)
class CompiledAsk:
    """A question whose names and types are known to fit."""

    definition: Ask
    """The question as declared."""
    join: CompiledJoin
    """The rows that are asked about, joined with their answers."""
    request: tuple[tuple[str, Expression], ...]
    """What a request has, by name: expressions on the columns of a row."""
    answer: tuple[Field, ...]
    """The columns of an answer, as the function that asks calls them."""
    topic: str
    """The topic of the answers."""
    timeout: timedelta
    """How long one call may take."""
    fresh: timedelta | None
    """For how long an answer is given to equal requests; None for not at all."""

    @property
    def name(self) -> str:
        """The question's name."""
        return self.definition.name

    @property
    def id(self) -> str:
        """The name of the question as it is asked now: about which rows, and by which version."""
        return self.join.question


def name_question(ask: Ask) -> str:
    """Name a question as it is asked now."""
    said = [ask.of, ask.when, ask.version]
    return f"{ask.name}-{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]}"
