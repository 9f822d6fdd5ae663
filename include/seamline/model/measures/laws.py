"""The laws of a measure, tried on small values and on random ones: what is found is as small as can be."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from itertools import product
from typing import Any, Protocol

from seamline.model.errors import MeasureFailed
from seamline.model.measures.values import list_sample_values
from seamline.model.types.schema import SqlType

FEW = 4
"""Of so many values every triple is tried."""
ROUNDS = 40
DIGITS = 1e-6
Lists = tuple[list[Any], ...]


class Lawful(Protocol):
    """What has laws; None is the state of nothing."""

    @property
    def name(self) -> str:
        """What it is called in a message."""
        ...

    def prepare(self, value: Any) -> Any:
        """Make the state of one value."""
        ...

    def plus(self, left: Any, right: Any) -> Any:
        """Merge two states."""
        ...

    def present(self, state: Any) -> Any:
        """Present a state."""
        ...


def broken_law(measure: Lawful, type: SqlType) -> str:
    """Say which law a measure breaks over values of a type, and of which values; empty if none was found.

    States are compared by what they present, doubles to six digits.
    """
    values = list_sample_values(type)
    try:
        if found := unlike_itself(measure, values):
            return found
        for law in LAWS:
            for lists in generate_law_cases(values):
                if law(measure, *lists):
                    return law(measure, *shrink_counterexample(measure, law, lists))
    except MeasureFailed as error:
        return error.message
    return ""


def unlike_itself(measure: Lawful, values: Sequence[Any]) -> str:
    """Find a value of which two states differ."""
    for value in values:
        one, other = (measure.present(measure.prepare(copy_value(value))) for _ in range(2))
        if not is_nearly_equal(one, other):
            return f"{measure.name}.prepare({value!r}) presents {one!r}, and {other!r} another time."
    return ""


def generate_law_cases(values: Sequence[Any]) -> Iterator[Lists]:
    """Return three lists of values each: all triples of single simple values, then random lists."""
    for triple in product(values[:FEW], repeat=3):
        yield tuple([value] for value in triple)
    dice = random.Random(0)
    for _ in range(ROUNDS):
        yield tuple(dice.choices(values, k=dice.randrange(5)) for _ in range(3))


def fold_values(measure: Lawful, values: Sequence[Any]) -> Any:
    """Make the state of many values."""
    return reduce(measure.plus, (measure.prepare(copy_value(value)) for value in values), None)


def copy_value(value: Any) -> Any:
    """Return a value that may be changed."""
    return deepcopy(value) if isinstance(value, list | dict) else value


def find_commutativity_breach(measure: Lawful, a: list[Any], b: list[Any], c: list[Any]) -> str:
    """Say where a + b is not b + a."""
    one, other = (
        measure.present(measure.plus(fold_values(measure, left), fold_values(measure, right)))
        for left, right in ((a, b), (b, a))
    )
    if is_nearly_equal(one, other):
        return ""
    return (
        f"{measure.name}.plus does not commute: of a = {a} and b = {b}, a + b presents {one!r} and "
        f"b + a {other!r}."
    )


def find_associativity_breach(measure: Lawful, a: list[Any], b: list[Any], c: list[Any]) -> str:
    """Say where (a + b) + c is not a + (b + c)."""
    x, y, z = (fold_values(measure, each) for each in (a, b, c))
    one = measure.present(measure.plus(measure.plus(x, y), z))
    x, y, z = (fold_values(measure, each) for each in (a, b, c))
    other = measure.present(measure.plus(x, measure.plus(y, z)))
    if is_nearly_equal(one, other):
        return ""
    return (
        f"{measure.name}.plus is not associative: of a = {a}, b = {b} and c = {c}, (a + b) + c presents {one!r} "
        f"and a + (b + c) {other!r}."
    )


def find_split_breach(measure: Lawful, a: list[Any], b: list[Any], c: list[Any]) -> str:
    """Say where values folded one by one are not the merge of their parts."""
    whole = measure.present(fold_values(measure, [*a, *b, *c]))
    parts = measure.present(reduce(measure.plus, (fold_values(measure, each) for each in (c, a, b))))
    if is_nearly_equal(whole, parts):
        return ""
    return (
        f"{measure.name}: what {[*a, *b, *c]} presents depends on where it is cut: {whole!r} value by value, "
        f"{parts!r} from the parts {c}, {a} and {b}."
    )


def find_mutation_breach(measure: Lawful, a: list[Any], b: list[Any], c: list[Any]) -> str:
    """Say where merging or presenting changes what is merged or presented."""
    left, right = fold_values(measure, a), fold_values(measure, b)
    before = deepcopy((left, right))
    measure.present(measure.plus(left, right))
    measure.present(left)
    if is_nearly_equal((left, right), before):
        return ""
    return f"{measure.name} changes the states that it is given: {before} were {(left, right)} afterwards."


Law = Callable[[Lawful, list[Any], list[Any], list[Any]], str]
LAWS: tuple[Law, ...] = (
    find_commutativity_breach,
    find_associativity_breach,
    find_split_breach,
    find_mutation_breach,
)


def shrink_counterexample(measure: Lawful, law: Law, lists: Lists) -> Lists:
    """Leave out values as long as the law stays broken."""
    for at, values in enumerate(lists):
        for place in range(len(values)):
            fewer = (*lists[:at], [*values[:place], *values[place + 1 :]], *lists[at + 1 :])
            if law(measure, *fewer):
                return shrink_counterexample(measure, law, fewer)
    return lists


def is_nearly_equal(one: Any, other: Any) -> bool:
    """Compare what is presented, part by part; doubles to six digits."""
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=DIGITS, abs_tol=DIGITS**2)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_nearly_equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_nearly_equal(one[name], other[name]) for name in one)
    return bool(one == other)
