"""A process made ready for the engines: which columns of which rows it is given, and how they are folded."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_join import CompiledJoin, JoinSide
from seamline.model.functions.folding import MOST_CHAINED, Fold, FunctionUnusable
from seamline.model.functions.function import LoadedFunction
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import Field, Schema
from seamline.model.user_code import class_hash


@dataclass(frozen=True)
class Budget:
    """What a fold may cost."""

    seconds: float = 10.0
    """How long a call may take."""
    memory: int = 64 << 20
    """Bytes that the state of a key may have, about."""


@dataclass(frozen=True)
class CompiledProcess:
    """A process whose names and types are known to fit."""

    name: str
    """The name of its rows."""
    sides: tuple[JoinSide, ...]
    """The rows that it is given, of each of its sources; all have the same columns, with those of the key."""
    keys: tuple[Field, ...]
    """The columns of the key."""
    function: LoadedFunction = field(repr=False)
    """What folds them: the user's function, a pattern, or both sides' rows in one call."""
    begin: timedelta
    """How often the state begins anew."""
    forget: timedelta | None
    """After how long without a row a key is forgotten; None for never."""
    selective: bool
    """Whether rows say whether they are selected; those that are not are not given to it."""
    version: str = ""
    """What the author calls its meaning."""
    lookups: frozenset[str] = frozenset()
    """The look-ups of its rows, by name."""
    copies: bool = False
    """Whether intervals are certified in which copies of rows count."""
    budget: Budget = Budget()
    """What calls and states may cost."""

    @property
    def id(self) -> str:
        """The name of its cache: that of another version has other rows."""
        said = [
            self.sides,
            [side.where and side.where.text for side in self.sides],
            [(name, made.text) for side in self.sides for name, made in side.made.items()],
            self.keys,
            self.function.name,
            self.function.code,
            self.begin,
            self.forget,
            self.version,
        ]
        return f"{self.name}/{hashlib.sha256(repr(said).encode()).hexdigest()[:12]}"

    @cached_property
    def fold(self) -> Fold:
        """Return how the rows of a key are folded."""
        forget = self.forget // MICROSECOND if self.forget else None
        # Timers of a pattern come to an end: each is that of a later row.
        chained = MOST_CHAINED if self.function.user else sys.maxsize
        return Fold(self.function, forget, chained, self.budget.memory)

    @property
    def columns(self) -> tuple[Field, ...]:
        """The columns of the rows that it is given."""
        return self.sides[0].columns

    @property
    def before(self) -> timedelta:
        """How far before an interval rows may be that are counted in it: zero, as a fold's reach is its span."""
        return timedelta(0)

    @property
    def after(self) -> timedelta:
        """How far behind it they may be."""
        return timedelta(0)

    @property
    def question(self) -> str:
        """The id of a question that its rows wait for: none."""
        return ""

    @property
    def size(self) -> int:
        """The length of a span, in microseconds."""
        return self.begin // MICROSECOND

    def schema(self, side: str) -> Schema:
        """List the columns of what is emitted on a side, the empty one of ``emits``: those of the key come first."""
        return Schema((*self.keys, *self.function.forms[side].fields))


Derived = CompiledJoin | CompiledProcess | CompiledChangelog
"""What makes rows of rows."""


def require_same_code(function: LoadedFunction) -> None:
    """Require that the code of a user's class, as this process has imported it, is what it was; FunctionUnusable."""
    if function.user and class_hash(function.user, private=True) != function.code:
        raise FunctionUnusable(
            f"{function.name}: its code was edited, or compiled by another release of Python, since this version was "
            "born, which goes on with the code of then"
        )
