"""What a view expects of each interval that is built: of a column, of the number of rows, or a suite's worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.errors import DefinitionError

LIBRARY = "great_expectations"


@dataclass(frozen=True)
class Expect:
    """What a presented column must look like. NULL meets everything but ``not_null``; NaN meets no bound."""

    column: str
    """A presented column of the view: a key or a measure."""
    at_least: float | None = None
    """The least value that is allowed; None for no bound."""
    at_most: float | None = None
    """The greatest value that is allowed; None for no bound."""
    not_null: bool = False
    """Whether NULL is refused."""
    unique: bool = False
    """Whether a value is refused that two rows of an interval have."""
    in_set: Sequence[str | float | bool] = ()
    """The values that are allowed; if empty, all are."""
    regex: str = ""
    """A pattern, as Python's ``re`` has it, that the whole text must match; if empty, any text does."""
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class ExpectRows:
    """How many rows an interval must present, also one that has none."""

    at_least: float | None = None
    """The least number that is allowed; None for no bound."""
    at_most: float | None = None
    """The greatest number that is allowed; None for no bound."""
    max_change: float | None = None
    """The largest change against the generation that is served, as a share of its rows: 0.5 for half of them. The
    first generation of an interval meets it."""
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class ExpectationSuite:
    """A suite that Great Expectations evaluates over the presented rows of an interval, if it has any.

    Only a build with a suite imports that library, which takes seconds.
    """

    expectations: Sequence[Mapping[str, Any]]
    """The library's own configurations: ``{"type": "expect_column_mean_to_be_between", "kwargs": {...}}``. One of
    severity "warning" or "info" is reported and holds nothing back."""
    modules: Sequence[str] = ()
    """Modules that define expectations of your own; they are imported before the suite is evaluated."""
    origin: Origin = declare_origin_field()

    @classmethod
    def of(cls, suite: Any) -> ExpectationSuite:
        """Take over a suite of Great Expectations, or what its ``to_json_dict()`` returns; DefinitionError."""
        made = suite.to_json_dict() if hasattr(suite, "to_json_dict") else suite
        listed = made.get("expectations") if isinstance(made, Mapping) else None
        if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
            raise DefinitionError(
                f"A value of type {type(suite).__name__} is not a suite of Great Expectations.",
                hint="give a suite of that library, or what its to_json_dict() returns.",
            )
        homes = {type(each).__module__ for each in getattr(suite, "expectations", ())}
        own = sorted(home for home in homes if home.partition(".")[0] not in (LIBRARY, "builtins"))
        kept = [
            {name: each[name] for name in ("type", "kwargs", "severity", "notes") if each.get(name)}
            for each in listed
        ]
        return cls(kept, own)


Expectation = Expect | ExpectRows | ExpectationSuite
