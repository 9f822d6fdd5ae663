"""The engine's side of measures in DuckDB: one family of measures, one module."""

from __future__ import annotations

from collections.abc import Mapping

from seamline.lake.engine.measures.frequent import Frequent
from seamline.lake.engine.measures.gathered import Buckets, Collected
from seamline.lake.engine.measures.moments import Spread
from seamline.lake.engine.measures.ordered import OrderedSteps
from seamline.lake.engine.measures.own import Owned
from seamline.lake.engine.measures.plain import (
    Averaged,
    CountSteps,
    Extreme,
    NetAveraged,
    NetTotalled,
    Totalled,
)
from seamline.lake.engine.measures.sketches import Different, RankedValues
from seamline.lake.engine.measures.steps import Family, Steps, quote_identifier
from seamline.model import measures as kinds
from seamline.model.compile.compiled_pipeline import CompiledMeasure

__all__ = ["FAMILIES", "Family", "Steps", "family_of", "quote_identifier"]

FAMILIES: Mapping[type[kinds.Measure], Family] = {
    kinds.Count: CountSteps(),
    kinds.Sum: Totalled(),
    kinds.Average: Averaged(),
    kinds.NetSum: NetTotalled(),
    kinds.NetAverage: NetAveraged(),
    kinds.Minimum: Extreme(),
    kinds.Maximum: Extreme(),
    kinds.First: OrderedSteps(),
    kinds.Last: OrderedSteps(),
    kinds.Variance: Spread(),
    kinds.Deviation: Spread(),
    kinds.Distinct: Different(),
    kinds.Quantile: RankedValues(),
    kinds.Quantiles: RankedValues(),
    kinds.Top: Frequent(),
    kinds.Histogram: Buckets(),
    kinds.CollectDistinct: Collected(),
    kinds.Own: Owned(),
}


def family_of(measure: CompiledMeasure) -> Family:
    """Find the engine's side of a measure that has a state."""
    return FAMILIES[type(measure.measure)]
