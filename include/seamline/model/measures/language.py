"""The words by which a definition names its measures; each takes ``where=``, a condition on the row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from seamline.model.measures.derived import Formula, Ratio
from seamline.model.measures.gathered import CollectDistinct, Histogram
from seamline.model.measures.moments import Deviation, Variance
from seamline.model.measures.monoid import Measure
from seamline.model.measures.ordered import First, Last
from seamline.model.measures.own import Own
from seamline.model.measures.plain import Average, Count, Maximum, Minimum, Sum
from seamline.model.measures.sketches import Distinct, Quantile, Quantiles, Top
from seamline.model.user_code import name_of


def count(of: str = "", *, where: str = "") -> Count:
    """Count rows, or the rows in which an expression is not NULL."""
    return Count(of, where=where)


def count_true(condition: str) -> Count:
    """Count the rows in which a condition is true."""
    return Count(where=condition)


def sum(of: str, *, where: str = "") -> Sum:
    """Add up an expression; exact for integers and decimals, compensated for doubles."""
    return Sum(of, where=where)


def avg(of: str, *, where: str = "") -> Average:
    """Take the mean of an expression."""
    return Average(of, where=where)


def min(of: str, *, where: str = "") -> Minimum:
    """Take the smallest value of an expression."""
    return Minimum(of, where=where)


def max(of: str, *, where: str = "") -> Maximum:
    """Take the largest value of an expression."""
    return Maximum(of, where=where)


def first(of: str, *, where: str = "") -> First:
    """Take the earliest value that is not NULL, by event time, partition and offset."""
    return First(of, where=where)


def last(of: str, *, where: str = "") -> Last:
    """Take the latest value that is not NULL, by event time, partition and offset."""
    return Last(of, where=where)


def variance(of: str, *, ddof: int = 1, where: str = "") -> Variance:
    """Take the variance of a sample (``ddof=1``) or of a population (``ddof=0``)."""
    return Variance(of, ddof, where=where)


def stddev(of: str, *, ddof: int = 1, where: str = "") -> Deviation:
    """Take the standard deviation of a sample (``ddof=1``) or of a population (``ddof=0``)."""
    return Deviation(of, ddof, where=where)


def distinct(of: str, *, where: str = "") -> Distinct:
    """Count different values (exact up to 128, then HyperLogLog with 1.6 % standard error)."""
    return Distinct(of, where=where)


def quantile(of: str, at: float, *, where: str = "") -> Quantile:
    """Find the value at rank ``at`` in [0, 1].

    Exact up to 200 values, then KLL: rank error below 1.65 % with 99 % confidence.
    """
    return Quantile(of, at, where=where)


def quantiles(of: str, at: Sequence[float], *, where: str = "") -> Quantiles:
    """Find the values at several ranks, as an array in their order, from the state that one needs."""
    return Quantiles(of, keep_items(at), where=where)


def top(of: str, k: int, *, where: str = "") -> Top:
    """Find the ``k`` most frequent values, as an array of (value, count, error)."""
    return Top(of, k, where=where)


def histogram(of: str, edges: Sequence[float], *, where: str = "") -> Histogram:
    """Count per bucket: below the first edge, from each edge up to the next, at or above the last."""
    return Histogram(of, keep_items(edges), where=where)


def collect_distinct(of: str, *, limit: int = 100, where: str = "") -> CollectDistinct:
    """Keep the different values, at most the ``limit`` smallest, and whether there were more."""
    return CollectDistinct(of, limit, where=where)


def ratio(above: str, below: str) -> Ratio:
    """Divide one measure of the view by another, both by name, when they are presented."""
    return Ratio(above=above, below=below)


def formula(sql: str, *, where: str = "", **parts: Measure) -> Formula:
    """Present an expression over parts, each a measure with a state: ``formula("exp(logs / n)", logs=.., n=..)``.

    ``where`` is a condition on the rows of every part, beside the part's own.
    """
    return Formula(sql=sql, made_of={name: narrowed(part, where) for name, part in parts.items()})


def keep_items(listed: Sequence[float]) -> Sequence[float]:
    """Make a tuple of what lists numbers; what lists none is refused where its view is checked."""
    return tuple(listed) if isinstance(listed, Iterable) else listed


def narrowed(part: Measure, where: str) -> Measure:
    """Add a condition to a measure's own; what is no measure is refused where its view is checked."""
    if not where or not isinstance(part, Measure):
        return part
    return replace(part, where=f"({part.where}) AND ({where})" if part.where else where)


def own(of: str, by: str | type, *, version: str = "", where: str = "") -> Own:
    """Let a class of your own (or its name ``module:class``) prepare, merge and present; see ``Monoid``."""
    return Own(of, name_of(by), version, where=where)
