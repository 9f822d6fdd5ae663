"""A user's process function: the class that was found by name, with the columns that it declares."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import FunctionType
from typing import Any, Protocol

from seamline.model.errors import DefinitionError
from seamline.model.functions.calls import EMITTED, ERRORS, Call
from seamline.model.functions.records import RecordFreezer, Values, parse_columns
from seamline.model.types.schema import BIGINT, INT, STRING, Field
from seamline.model.user_code import class_hash, class_of

ERROR_FIELDS = (
    Field("call", STRING),
    Field("error", STRING),
    Field("topic", STRING),
    Field("partition", INT),
    Field("offset", BIGINT),
)
"""What is emitted on the side of errors: which call has raised, what, and of which record; timers have none."""
METHODS = {
    "row": ("state", "row", "out"),
    "timer": ("state", "at", "out"),
    "end": ("state", "at", "out"),
}
"""What is given to the methods of a function."""
Row = Mapping[str, Any]


class ProcessFunction(Protocol):
    """What a user's class has: the columns of its state and of what it emits, and ``row``.

    ``timer`` is for those that set timers, ``end`` for those that have something to say before state begins anew. Each
    returns the new state, a tuple with a value for each column of ``state``, or None: the key, with its timers, is
    forgotten. A state that is given is None where the key has none.
    """

    state: str
    """The columns of the state, in DDL; it may be empty."""
    emits: str
    """The columns of what is emitted, in DDL."""

    def row(self, state: Any, row: Row, out: Call) -> Values | None:
        """Take a row of the key."""
        ...


@dataclass(frozen=True)
class LoadedFunction:
    """A user's class that was found, with its types."""

    name: str
    """``module:class``."""
    made: Any = field(repr=False)
    """An instance of the class."""
    code: str
    """A hash of its code."""
    state: RecordFreezer = field(repr=False)
    """The columns of the state."""
    forms: Mapping[str, RecordFreezer] = field(repr=False)
    """The columns of what is emitted, by side; those of ``emits`` by the empty name."""

    has_timer: bool = False
    """Whether it may set timers."""
    has_end: bool = False
    """Whether it is called at the end of a span."""
    last_call: str = "end"
    """The method of the user's class that is called there."""
    user: type | None = field(default=None, repr=False)
    """The user's class, whose code is looked at; None where there is none."""


def load_function(name: str) -> LoadedFunction:
    """Find a process function by ``module:class``; DefinitionError where it is none."""
    return load_class(name, class_of(name))


@lru_cache(maxsize=64)
def load_class(name: str, found: Any) -> LoadedFunction:
    """Make a process function of a class; DefinitionError where it is none."""
    lacking = [each for each in ("state", "emits", "row") if not hasattr(found, each)]
    if lacking:
        raise DefinitionError(
            f"{name!r} has no {', '.join(lacking)}.",
            hint='a process function has state = "total DOUBLE", emits = "kind STRING", and a method '
            "row(self, state, row, out).",
        )
    for method, arguments in METHODS.items():
        if hasattr(found, method):
            require_method(f"{name}.{method}", getattr(found, method), arguments)
    return LoadedFunction(
        name,
        make_instance(name, found),
        class_hash(found, private=True),
        RecordFreezer("state", parse_columns(found.state, f"{name}.state")),
        load_forms(name, found),
        hasattr(found, "timer"),
        hasattr(found, "end"),
        user=found,
    )


def require_method(name: str, method: Any, arguments: Sequence[str]) -> None:
    """Require that a method can be called as it is: with an object and some arguments; DefinitionError."""
    said = f"def {name.rpartition('.')[2]}(self, {', '.join(arguments)})"
    if (
        not isinstance(method, FunctionType)
        or inspect.iscoroutinefunction(method)
        or inspect.isgeneratorfunction(method)
    ):
        raise DefinitionError(f"{name} is no method that returns a state.", hint=f"write {said}: ...")
    try:
        inspect.signature(method).bind("self", *arguments)
    except TypeError as error:
        raise DefinitionError(f"{name} cannot be called: {error}.", hint=f"write {said}: ...") from None


def load_forms(name: str, found: Any) -> dict[str, RecordFreezer]:
    """Return the columns of what a class emits, by side; DefinitionError where it does not declare them."""
    sides = getattr(found, "sides", {})
    if not isinstance(sides, Mapping):
        raise DefinitionError(f"{name}.sides is no dict.", hint='write sides = {"odd": "why STRING"}.')
    if taken := {EMITTED, ERRORS} & sides.keys():
        raise DefinitionError(
            f"{name}.sides has a side {min(taken)!r}, which is the function's own.",
            hint="choose another name.",
        )
    columns = {EMITTED: parse_columns(found.emits, f"{name}.emits")}
    columns |= {side: parse_columns(text, f"{name}.sides[{side!r}]") for side, text in sides.items()}
    columns[ERRORS] = ERROR_FIELDS
    return {side: RecordFreezer(side or "emits", fields) for side, fields in columns.items()}


def make_instance(name: str, found: Any) -> Any:
    """Return an instance of a user's class; DefinitionError where it needs anything for that."""
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"{name!r} cannot be created: {type(error).__name__}: {error}.",
            hint="it is created without arguments.",
        ) from error
