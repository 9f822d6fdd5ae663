"""Measures: aggregations whose state is mergeable (prepare, plus, present).

The classes carry the dull plain-Python meaning, which is the oracle of every engine. ``parts`` names the
columns in which an engine stores a state; a missing state (NULL) is the zero of every part but a count.
"""

from __future__ import annotations

from seamline.model.measures.derived import Derived, Formula, Ratio, present_all
from seamline.model.measures.gathered import CollectDistinct, Histogram
from seamline.model.measures.language import (
    avg,
    collect_distinct,
    count,
    count_true,
    distinct,
    first,
    formula,
    histogram,
    last,
    max,
    min,
    own,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline.model.measures.moments import Deviation, Variance
from seamline.model.measures.monoid import Measure, Part, Place, strip_type_parameters
from seamline.model.measures.netted import NetAverage, NetSum, make_net, negate_state
from seamline.model.measures.ordered import First, Last
from seamline.model.measures.own import Monoid, Own
from seamline.model.measures.plain import Average, Count, Maximum, Minimum, Sum
from seamline.model.measures.sketches import Distinct, Quantile, Quantiles, Ranked, Top

MEASURES: tuple[type[Measure], ...] = (
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    First,
    Last,
    Variance,
    Deviation,
    Distinct,
    Quantile,
    Quantiles,
    Top,
    Histogram,
    CollectDistinct,
    Own,
    Ratio,
    Formula,
)

__all__ = [
    "MEASURES",
    "Average",
    "CollectDistinct",
    "Count",
    "Derived",
    "Deviation",
    "Distinct",
    "First",
    "Formula",
    "Histogram",
    "Last",
    "Maximum",
    "Measure",
    "Minimum",
    "Monoid",
    "NetAverage",
    "NetSum",
    "Own",
    "Part",
    "Place",
    "Quantile",
    "Quantiles",
    "Ranked",
    "Ratio",
    "Sum",
    "Top",
    "Variance",
    "avg",
    "collect_distinct",
    "count",
    "count_true",
    "distinct",
    "first",
    "formula",
    "histogram",
    "last",
    "make_net",
    "max",
    "min",
    "negate_state",
    "own",
    "present_all",
    "quantile",
    "quantiles",
    "ratio",
    "stddev",
    "strip_type_parameters",
    "sum",
    "top",
    "variance",
]
