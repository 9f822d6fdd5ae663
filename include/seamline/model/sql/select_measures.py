"""Measures as a query has them: ``sum(amount) FILTER (WHERE paid) AS total``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seamline.model.measures import Measure, language
from seamline.model.sql.durations import read_number
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Scope, is_plain_name
from seamline.model.sql.slices import SqlText, unquote
from seamline.model.sql.tokens import SqlToken, TokenKind

TOLD = {
    "count": "count(*), count(x)",
    "count_if": "count_if(condition)",
    "quantile": "quantile(x, 0.95)",
    "quantiles": "quantiles(x, 0.5, 0.95)",
    "top": "top(x, 10)",
    "histogram": "histogram(x, 0, 15, 60)",
    "collect_distinct": "collect_distinct(x), collect_distinct(x, 100)",
    "ratio": "ratio(above, below), with the names of two measures",
    "formula": "formula('expression over parts', part => sum(x), ...)",
    "own": "own(x, 'module:Class')",
}
"""How measures are written whose form is not name(x)."""
HINTS = {
    "COUNT_DISTINCT": "write approx_count_distinct(x): it is exact up to 128 values.",
    "MEDIAN": "write quantile(x, 0.5).",
    "COLLECT_SET": "write collect_distinct(x).",
    "ARRAY_AGG": "write collect_distinct(x): a state is bounded.",
    "COLLECT_LIST": "write collect_distinct(x): a state is bounded.",
    "STRING_AGG": "write collect_distinct(x): a state is bounded.",
}


@dataclass
class MeasureCall:
    """The arguments of a measure."""

    reader: Reader
    """What is read."""
    token: SqlToken
    """The name of the measure."""
    scope: Scope
    """What the names in it mean."""
    given: list[SqlText] = field(default_factory=list)
    """The arguments in their order."""
    parts: dict[str, Measure] = field(default_factory=dict)
    """The parts of a formula, by name."""
    named: dict[str, SqlText] = field(default_factory=dict)
    """Other arguments with names."""

    @property
    def name(self) -> str:
        """The name of the measure."""
        return self.token.text.lower()

    def fail(self, message: str, token: SqlToken | None = None) -> Any:
        """Refuse the call, and say how the measure is written."""
        self.reader.fail(message, f"write {TOLD.get(self.name, f'{self.name}(x)')}.", token or self.token)

    def expression(self, number: int = 0) -> str:
        """Return an argument that is an expression."""
        if number >= len(self.given):
            self.fail(f"{self.name} lacks an argument.")
        return self.scope.name(self.given[number]).text

    def require(self, least: int, most: int | None = None) -> None:
        """Refuse more or fewer arguments than there may be."""
        if not least <= len(self.given) <= (least if most is None else most) or self.named or self.parts:
            self.fail(f"{self.name} does not take these arguments.")

    def number(self, number: int) -> int | float:
        """Return an argument that is a number."""
        part = self.given[number]
        inner = Reader(self.reader.text, self.reader.file, [*part.tokens, END], clause=self.reader.clause)
        found = read_number(inner, f"a number of {self.name}")
        if inner.next is not END:
            self.fail(f"{part.text!r} is not a number.", part.token)
        return found

    def numbers(self) -> Sequence[int | float]:
        """Return all arguments but the first as numbers."""
        return [self.number(each) for each in range(1, len(self.given))]

    def string(self, part: SqlText) -> str:
        """Return an argument that is a text."""
        inner = Reader(self.reader.text, self.reader.file, [*part.tokens, END], clause=self.reader.clause)
        found = inner.string("a text")
        if inner.next is not END:
            self.fail(f"{part.text!r} is not a text.", part.token)
        return found

    def measure_name(self, number: int) -> str:
        """Return an argument that is the name of a measure."""
        if not is_plain_name(self.given[number]):
            self.fail(f"{self.given[number].text!r} is not the name of a measure.", self.given[number].token)
        return unquote(self.given[number].token)


END = SqlToken(TokenKind.END, "", 0, 0, apart=True)


def begins_measure(reader: Reader) -> bool:
    """Return whether a call stands next."""
    return bool(reader.next.word) and reader.peek().symbol == "("


def read_measure(reader: Reader, scope: Scope) -> Measure:
    """Read a measure, with the condition behind it."""
    token = reader.take()
    call = MeasureCall(reader, token, scope)
    if call.name not in MEASURES:
        reader.fail(
            f"There is no measure {call.name!r}.",
            HINTS.get(token.word, f"there are {', '.join(MEASURES)}; write formula(...) for others."),
            token,
        )
    with reader.within(f"{call.name}()"):
        reader.expect_symbol("(", "write the arguments in brackets.")
        read_arguments(call)
        where = read_filter(reader, scope)
        if call.name in UNFILTERED and where:
            call.fail(f"{call.name} takes no FILTER.")
        made: Measure = MEASURES[call.name](call, {"where": where} if where else {})
    return made


def read_arguments(call: MeasureCall) -> None:
    """Read arguments up to the bracket that closes."""
    reader = call.reader
    if reader.is_words("DISTINCT"):
        reader.fail(f"{call.name} has no DISTINCT.", HINTS["COUNT_DISTINCT"])
    while not reader.accept_symbol(")"):
        if call.given or call.named or call.parts:
            reader.expect_symbol(",", "put commas between arguments, and close the bracket.")
            reader.refuse_comma()
        if reader.peek().symbol == "=>":
            read_named_argument(call)
        else:
            call.given.append(reader.expression("An argument"))


def read_named_argument(call: MeasureCall) -> None:
    """Read ``name => value``: of a formula a measure, of others an expression."""
    reader = call.reader
    token = reader.name("the name of an argument")
    name = unquote(token)
    reader.expect_symbol("=>", "write name => value.")
    if name in call.parts or name in call.named:
        call.fail(f"{name!r} is given twice.", token)
    if call.name == "formula":
        if name in ("sql", "where"):
            call.fail(f"A part of a formula cannot be called {name!r}.", token)
        if not begins_measure(reader) or reader.next.text.lower() in STATELESS:
            call.fail(f"The part {name!r} is not a measure with a state.", reader.next)
        call.parts[name] = read_measure(reader, call.scope)
    else:
        call.named[name] = reader.expression("An argument")


def read_filter(reader: Reader, scope: Scope) -> str:
    """Read ``FILTER (WHERE condition)``; empty where it is not there."""
    if not reader.accept("FILTER"):
        return ""
    hint = "write FILTER (WHERE condition)."
    reader.expect_symbol("(", hint)
    reader.expect("WHERE", hint=hint)
    found = scope.name(reader.expression("The condition"))
    reader.expect_symbol(")", hint)
    return found.text


Made = Callable[[MeasureCall, Mapping[str, Any]], Measure]


def of_one(make: Callable[..., Measure], **settings: Any) -> Made:
    """Make what reads a measure of one expression."""

    def read(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
        call.require(1)
        return make(call.expression(), **settings, **where)

    return read


def read_count(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``count(*)`` or ``count(x)``."""
    call.require(1)
    return language.count(*(() if call.given[0].text == "*" else (call.expression(),)), **where)


def read_count_if(call: MeasureCall, _where: Mapping[str, Any]) -> Measure:
    """Read ``count_if(condition)``."""
    call.require(1)
    return language.count_true(call.expression())


def read_quantile(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``quantile(x, 0.95)``."""
    call.require(2)
    return language.quantile(call.expression(), call.number(1), **where)


def read_quantiles(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``quantiles(x, 0.5, 0.95)``."""
    call.require(2, 100)
    return language.quantiles(call.expression(), call.numbers(), **where)


def read_top(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``top(x, 10)``."""
    call.require(2)
    return language.top(call.expression(), require_whole(call, 1), **where)


def read_histogram(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``histogram(x, 0, 15, 60)``."""
    call.require(2, 1000)
    return language.histogram(call.expression(), call.numbers(), **where)


def read_collect(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``collect_distinct(x)`` or ``collect_distinct(x, 100)``."""
    call.require(1, 2)
    limit: dict[str, Any] = {"limit": require_whole(call, 1)} if len(call.given) > 1 else {}
    return language.collect_distinct(call.expression(), **limit, **where)


def read_ratio(call: MeasureCall, _where: Mapping[str, Any]) -> Measure:
    """Read ``ratio(above, below)``."""
    call.require(2)
    return language.ratio(call.measure_name(0), call.measure_name(1))


def read_formula(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``formula('expression', part => measure, ...)``."""
    if len(call.given) != 1 or not call.parts:
        call.fail("A formula has an expression and parts.")
    parts: dict[str, Any] = {**where, **call.parts}
    return language.formula(call.string(call.given[0]), **parts)


def read_own(call: MeasureCall, where: Mapping[str, Any]) -> Measure:
    """Read ``own(x, 'module:Class')``, perhaps with ``version => '2'``."""
    version = {name: call.string(part) for name, part in call.named.items() if name == "version"}
    if len(call.given) != 2 or {*call.named} - {"version"}:
        call.fail("A measure of your own has an expression and a class.")
    return language.own(call.expression(), call.string(call.given[1]), **version, **where)


def require_whole(call: MeasureCall, number: int) -> int:
    """Return an argument that is a whole number."""
    found = call.number(number)
    if not isinstance(found, int):
        call.fail(f"{found!r} is not a whole number.", call.given[number].token)
    return int(found)


STATELESS = ("ratio", "formula")
"""Measures that are made of others, and cannot be parts."""
UNFILTERED = ("ratio", "count_if")
"""Measures without FILTER: a condition is written into the measures of which a ratio is."""
MEASURES: Mapping[str, Made] = {
    "count": read_count,
    "count_if": read_count_if,
    "sum": of_one(language.sum),
    "avg": of_one(language.avg),
    "min": of_one(language.min),
    "max": of_one(language.max),
    "first": of_one(language.first),
    "first_value": of_one(language.first),
    "last": of_one(language.last),
    "last_value": of_one(language.last),
    "variance": of_one(language.variance),
    "var_samp": of_one(language.variance),
    "var_pop": of_one(language.variance, ddof=0),
    "stddev": of_one(language.stddev),
    "stddev_samp": of_one(language.stddev),
    "stddev_pop": of_one(language.stddev, ddof=0),
    "approx_count_distinct": of_one(language.distinct),
    "quantile": read_quantile,
    "quantiles": read_quantiles,
    "top": read_top,
    "histogram": read_histogram,
    "collect_distinct": read_collect,
    "ratio": read_ratio,
    "formula": read_formula,
    "own": read_own,
}
"""What reads each measure."""
