"""A user's own measure is held to the laws when it is loaded: a breaker is told with a small example."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import own_measures
from tests.unit.model.test_definition import ORDERS, with_view
from tests.unit.own_measures import GeometricMean, Letters, MeanOfMeans, Span

from seamline import View, count, formula, own, sum
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import fingerprint_view
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.model.measures import Own
from seamline.model.measures.laws import LAWS, broken_law
from seamline.model.measures.own import LoadedMeasure, load_user_measure
from seamline.model.measures.values import list_sample_values, normalize_stored_value
from seamline.model.types.schema import parse_type
from seamline.model.user_code import class_hash, name_of

DOUBLE = parse_type("DOUBLE", "x")


def measured(by: Any, of: str = "CAST(amount AS DOUBLE)") -> Pipeline:
    return with_view(measures={"m": own(of, by)})


def name(by: str) -> str:
    return name_of(getattr(own_measures, by))


WRONG: dict[str, tuple[Pipeline, str, str]] = {
    by: (measured(name(by), "amount * 1.5D"), "views[by_customer].measures[m]", fact)
    for by, fact in {
        "MeanOfMeans": "a = [0.0], b = [0.0] and c = [1.0], (a + b) + c presents 0.5 and a + (b + c) 0.25",
        "Latest": "plus does not commute: of a = [0.0] and b = [1.0], a + b presents 1.0 and b + a 0.0",
        "Gathering": "changes the states that it is given",
        "Drifting": "prepare(0.0) presents 1.0, and 2.0 another time",
        "Inverse": "prepare(0.0) raised ZeroDivisionError",
        "Mistyped": "0.0 is not of type STRING",
        "Short": "prepare returned 0.0, not a tuple of (mean)",
        "Bare": "has no prepare, plus, present, state, result",
        "Mapped": "keeps a MAP",
        "Asking": "cannot be created",
        "Nameless": "Nameless.place is of type object",
    }.items()
}


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_a_breaker_is_refused_with_its_counter_example(case: str) -> None:
    """What it would do to a year of answers is not seen until somebody compares the two layers."""
    pipeline, field, fact = WRONG[case]
    compiled, problems = compile_with_problems(pipeline)
    assert compiled is None
    (found,) = problems
    assert found.field == field
    assert fact in found.message
    assert found.hint


@pytest.mark.parametrize(
    ("by", "type"),
    [(Span, "DOUBLE"), (GeometricMean, "DOUBLE"), (Letters, "STRING"), (GeometricMean, "INT")],
    ids=str,
)
def test_who_keeps_the_laws_is_taken(by: type, type: str) -> None:
    """A check that refused good measures would be turned off."""
    assert broken_law(load_user_measure(name_of(by)), parse_type(type, "x")) == ""


NUMBERS = st.lists(st.floats(0.01, 1000), max_size=6)


@given(lists=st.tuples(NUMBERS, NUMBERS, NUMBERS), law=st.sampled_from(LAWS))
def test_who_is_taken_keeps_the_laws_of_all_values(lists: tuple[list[float], ...], law: Any) -> None:
    """The values that are tried at load are few."""
    assert law(load_user_measure(name_of(GeometricMean)), *lists) == ""


def test_a_counter_example_is_small() -> None:
    """Nobody sees a mistake in fifty numbers."""

    class Large(MeanOfMeans):
        def plus(self, left: Any, right: Any) -> Any:
            total = left[0] + right[0]
            return (total if total < 100 else left[0],)

    made = LoadedMeasure("Large", Large(), "", parse_type("STRUCT<mean: DOUBLE>", "x"), DOUBLE)
    found = broken_law(made, DOUBLE)
    assert re.search(r"does not commute: of a = \[100\.0\] and b = \[[-\d.]+\], a", found)


@pytest.mark.parametrize(
    ("by", "values", "expected"),
    [
        (Span, [3.0, None, 10.0, 3.0, 1.0], 9.0),
        (GeometricMean, [2.0, None, 8.0, -1.0], pytest.approx(4.0)),
        (Letters, ["ab", None, "bcd", "a"], {"letters": ["a", "b", "c", "d"], "longest": "bcd"}),
        (Span, [None], None),
    ],
)
def test_meaning_by_hand(by: type, values: list[Any], expected: Any) -> None:
    """NULL adds nothing, as with every measure."""
    measure = own("x", by)
    assert measure.present(measure.plus(measure.fold(values[:2]), measure.fold(values[2:]))) == expected


@pytest.mark.parametrize(
    "type",
    ["INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(1,0)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP",
     "BINARY", "ARRAY<INT>", "STRUCT<a: INT, b: ARRAY<STRING>>"],
)  # fmt: skip
def test_small_values_are_values_of_their_type(type: str) -> None:
    """Else a good measure would fail its check on what it can never meet."""
    made = parse_type(type, "x")
    assert (
        [normalize_stored_value(value, made) for value in list_sample_values(made)]
        == list_sample_values(made)
        != []
    )


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (True, "INT"), (1, "BOOLEAN"), (2**31, "INT"), (1.5, "BIGINT"), ("1", "DOUBLE"), (b"a", "STRING"),
        (Decimal("1.234"), "DECIMAL(10,2)"), (Decimal("NaN"), "DECIMAL(10,2)"), (100, "DECIMAL(3,1)"),
        ({"a": 1}, "STRUCT<b: INT>"), ({1}, "ARRAY<INT>"),
    ],
)  # fmt: skip
def test_what_a_table_cannot_hold_is_no_state(value: Any, type: str) -> None:
    """Found when the definition loads, not in the stream."""
    with pytest.raises(TypeError):
        normalize_stored_value(value, parse_type(type, "x"))


def test_its_code_is_part_of_the_fingerprint_and_its_place_is_not() -> None:
    """Other code makes other numbers; a module that was renamed makes the same."""

    class Elsewhere(Span):
        """The same, of another name."""

    class Other(Span):
        def present(self, state: tuple[float, float]) -> float:
            return state[1]

    assert len({class_hash(Span), class_hash(Elsewhere), class_hash(Other)}) == 3 - 1
    (view,) = measured(Span).views
    newer = View(
        "by_customer", view.keys, view.window, {"m": own("CAST(amount AS DOUBLE)", Span, version="2")}
    )
    assert fingerprint_view(ORDERS, newer) != fingerprint_view(ORDERS, view)


def test_own_measures_and_formulas_are_stored_and_come_back() -> None:
    """A version runs from what was stored at its birth."""
    measures = {
        "span": own("amount", Span, where="amount > 1"),
        "mean": formula("try_divide(total, n)", total=sum("amount"), n=count("amount"), where="amount > 1"),
    }
    made = with_view(measures=measures)
    back = from_json(to_json(made))
    assert compile_pipeline(back).views[0].fingerprint == compile_pipeline(made).views[0].fingerprint


def test_a_class_in_the_definition_itself_is_refused() -> None:
    """Tasks cannot import it."""

    class Local(Span):
        pass

    with pytest.raises(DefinitionError, match="does not name a class of a module"):
        Own("x", name_of(Local)).check("DOUBLE")
