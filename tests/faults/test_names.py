"""Any names, by chance, in every window, format and look-up: what a user calls a thing changes no number."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.laws.dialects import DIALECTS
from tests.laws.names import (
    HOSTILE,
    ROLES,
    WINDOWS,
    answered,
    harmless,
    lived,
    named,
    pipeline,
    read,
    refused,
)
from tests.laws.test_names import FIRST, SECOND

from seamline.testing import Scenario

NOON = "2024-01-01T12:00Z"
GIVEN = st.dictionaries(st.sampled_from([*ROLES]), st.sampled_from(HOSTILE), min_size=1, max_size=6).filter(
    lambda given: named(given)["on"] != named(given)["column"]
)
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@given(GIVEN, st.sampled_from(range(4)), st.booleans())
@settings(deadline=None, max_examples=60, suppress_health_check=CHECKS)
def test_any_name_changes_no_number(given: dict[str, str], at: int, exploding: bool) -> None:
    """Every measure, and every window in time."""
    names = named(given)
    assume(not refused(pipeline(names, WINDOWS[at], exploding=exploding)))
    assert answered(names, WINDOWS[at], exploding=exploding) == harmless(at, exploding=exploding), names


@given(GIVEN, st.sampled_from([*DIALECTS]))
@settings(deadline=None, max_examples=60, suppress_health_check=CHECKS)
def test_any_name_is_read_from_every_format(given: dict[str, str], format: str) -> None:
    """Groups of a pattern, fields of a schema and members of an object are called by the user too."""
    names, dialect = named(given), DIALECTS[format]
    assume(not refused(pipeline(names, dialect=dialect)))
    assert read(names, dialect) == read(dict(ROLES), dialect), names


@given(GIVEN, st.sampled_from(WINDOWS), st.booleans())
@settings(deadline=None, max_examples=40, suppress_health_check=CHECKS)
def test_any_name_lives(given: dict[str, str], window: object, pinned: bool) -> None:
    """Epochs, count windows, look-ups in the row, a build and what it answers."""
    names = named(given)
    assume(not refused(pipeline(names, window, few=True, pinned=pinned)))
    assert lived(names, window, pinned=pinned) == lived(dict(ROLES), window, pinned=pinned), names


@pytest.mark.parametrize(("given", "at", "pinned"), [(FIRST, 3, True), (SECOND, 0, False), (SECOND, 4, True)])
def test_words_of_sql_and_ours_live_on_spark_and_delta(
    spark: SparkSession, scenario: Callable[..., Scenario], given: dict[str, str], at: int, pinned: bool
) -> None:
    """Spark tells no case of letters apart, and has words of its own."""
    life = lived(
        named(given), WINDOWS[at], pinned=pinned, spark=lambda made: scenario(made, spark=spark, now=NOON)
    )
    assert life == lived(dict(ROLES), WINDOWS[at], pinned=pinned)
