"""A user's own measure: a class of prepare, plus and present, found by name and checked by the laws of a measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from seamline.model.errors import DefinitionError, MeasureFailed
from seamline.model.measures.laws import broken_law
from seamline.model.measures.monoid import Measure, Part, Place
from seamline.model.measures.values import normalize_stored_value
from seamline.model.types.schema import Schema, SqlType, TypeKind, parse_type
from seamline.model.user_code import class_hash, class_of

METHODS = ("prepare", "plus", "present")
TOTAL = "it must take every value of the expression (prepare may return None: nothing), and return what it declares."


class Monoid(Protocol):
    """What a user's class has: the columns of a state, the type that is presented, and three methods.

    A state is a tuple with a value for each column of ``state`` (Spark DDL).
    """

    state: str
    result: str

    def prepare(self, value: Any) -> tuple[Any, ...] | None:
        """Make the state of one value, which is not NULL; None if it adds nothing."""
        ...

    def plus(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge two states; associative and commutative."""
        ...

    def present(self, state: tuple[Any, ...]) -> Any:
        """Turn the state of at least one value into what people read."""
        ...


@dataclass(frozen=True)
class LoadedMeasure:
    """A user's class that was found, with its types."""

    name: str
    """``module:class``."""
    made: Monoid
    """An instance of the class."""
    code: str
    """A hash of its code."""
    state: SqlType
    """The type of its state."""
    result: SqlType
    """The type of what it presents."""

    def prepare(self, value: Any) -> Any:
        """Make the state of one value as a table returns it; MeasureFailed where the user's code fails."""
        return None if value is None else self.kept("prepare", value)

    def plus(self, left: Any, right: Any) -> Any:
        """Merge two states; None is the state of nothing."""
        if left is None or right is None:
            return right if left is None else left
        return self.kept("plus", left, right)

    def present(self, state: Any) -> Any:
        """Present a state; None of nothing."""
        if state is None:
            return None
        return self.checked("present", self.called("present", state), self.result)

    def kept(self, method: str, *arguments: Any) -> Any:
        """Call a method that makes a state, and return the state as a table does."""
        found = self.called(method, *arguments)
        if found is None and method == "prepare":
            return None
        if not isinstance(found, tuple) or len(found) != len(self.state.fields):
            columns = ", ".join(field.name for field in self.state.fields)
            raise MeasureFailed(
                f"{self.name}.{method} returned {found!r}, not a tuple of ({columns}).", hint=TOTAL
            )
        pairs = zip(found, self.state.fields, strict=True)
        return tuple(self.checked(method, each, field.type) for each, field in pairs)

    def checked(self, method: str, value: Any, type: SqlType) -> Any:
        """Return a value as a table does; MeasureFailed where its type cannot hold it."""
        try:
            return normalize_stored_value(value, type)
        except TypeError as error:
            raise MeasureFailed(
                f"{self.name}.{method} returned a value that does not fit: {error}.", hint=TOTAL
            ) from error

    def called(self, method: str, *arguments: Any) -> Any:
        """Call the user's code; MeasureFailed with what it raised."""
        try:
            return getattr(self.made, method)(*arguments)
        except Exception as error:
            said = ", ".join(map(repr, arguments))
            raise MeasureFailed(
                f"{self.name}.{method}({said}) raised {type(error).__name__}: {error}.", hint=TOTAL
            ) from error


@lru_cache(maxsize=64)
def load_user_measure(name: str) -> LoadedMeasure:
    """Find a user's measure by ``module:class``; DefinitionError where it is none."""
    found = class_of(name)
    lacking = [each for each in (*METHODS, "state", "result") if not hasattr(found, each)]
    if lacking:
        raise DefinitionError(
            f"{name!r} has no {', '.join(lacking)}.",
            hint='a measure has state = "total DOUBLE, n BIGINT", result = "DOUBLE", prepare, plus and present.',
        )
    state = Schema.parse(found.state)  # type: ignore[attr-defined]
    made = ", ".join(f"{field.name}: {field.type.spark}" for field in state.fields)
    result = parse_type(found.result, "result")  # type: ignore[attr-defined]
    types = [*(field.type for field in state.fields), result]
    if TypeKind.MAP in {kind for type in types for kind in list_type_kinds(type)}:
        raise DefinitionError(f"{name!r} keeps a MAP.", hint="use an ARRAY of STRUCT<key: .., value: ..>.")
    try:
        instance = found()
    except Exception as error:
        raise DefinitionError(
            f"{name!r} cannot be created: {type(error).__name__}: {error}.",
            hint="it is created without arguments.",
        ) from error
    return LoadedMeasure(name, instance, class_hash(found), parse_type(f"STRUCT<{made}>", "state"), result)


def list_type_kinds(type: SqlType) -> set[TypeKind]:
    """List the kinds of a type and of its parts."""
    parts = [*(field.type for field in type.fields), *([type.element] if type.element else [])]
    return {type.kind}.union(*map(list_type_kinds, parts))


@lru_cache(maxsize=64)
def explain_broken_law(name: str, input: str) -> str:
    """Say which law a user's measure breaks over values of a type, with the counter-example; empty if none."""
    return broken_law(load_user_measure(name), parse_type(input, "of"))


@dataclass(frozen=True)
class Own(Measure):
    """What a user's class makes of the values that are not NULL; NULL when there is none."""

    by: str = ""
    """The class (``Monoid``) as ``module:class``."""
    version: str = ""
    """Any text; another one says that the class means something else, though its code is the same."""
    kind: ClassVar[str] = "own"

    @property
    def loaded(self) -> LoadedMeasure:
        """The class."""
        return load_user_measure(self.by)

    @property
    def monoid(self) -> tuple[Any, ...]:
        return (self.kind, self.by, self.version)

    def check(self, input: str) -> None:
        if TypeKind.MAP in list_type_kinds(parse_type(input, "of")):
            raise DefinitionError(
                f"own({self.of!r}) is of {input}.", hint="select what you need from the MAP."
            )
        self.loaded  # noqa: B018 - raises what is wrong with it
        if broken := explain_broken_law(self.by, input):
            raise DefinitionError(
                broken,
                hint="prepare must take every value (None adds nothing), and a state must keep all that merging needs: "
                "for a mean, a total and a count.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("state", self.loaded.state.spark),)

    def result(self, input: str) -> str:
        return self.loaded.result.spark

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return self.loaded.prepare(value)

    def plus(self, left: Any, right: Any) -> Any:
        return self.loaded.plus(left, right)

    def present(self, state: Any) -> Any:
        return self.loaded.present(state)
