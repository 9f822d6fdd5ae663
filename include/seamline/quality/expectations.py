"""What a view expects of its numbers, checked and reported with Great Expectations over the presented rows."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pyarrow as pa

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.quality.quality_pages import page_of

COUNTED = {"result_format": "SUMMARY"}
LOCATED = {"result_format": "COMPLETE"}


@dataclass(frozen=True)
class Checked:
    """What came of a view's expectations."""

    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """A sentence for each expectation that was not met, by interval id; intervals where all were are left out."""
    page: str = ""
    """The page of all results, as HTML; empty where there was nothing to check."""


def validate_presented_rows(view: CompiledView, presented: pa.Table) -> Checked:
    """Check the expectations of a view.

    ``presented`` has a row per interval, keys and window: the columns named in ``view.expect`` and
    ``interval``. NULL meets a bound. No rows meet everything: counts must have been compared before.
    """
    if not view.expect or not presented.num_rows:
        return Checked()
    gx = great_expectations()
    batch = batch_of(gx, presented)
    suite = suite_of(gx, view)
    counted = batch.validate(suite, result_format=COUNTED)
    return Checked(
        {} if counted.success else list_failed_expectations(batch, suite, presented), page_of(counted)
    )


def list_failed_expectations(batch: Any, suite: Any, presented: pa.Table) -> dict[str, list[str]]:
    """List a sentence per failed expectation, by interval id."""
    found: dict[str, list[str]] = {}
    for result in batch.validate(suite, result_format=LOCATED).results:
        if not result.success:
            for interval, sentence in locate_failures(result, presented["interval"].to_pylist()):
                found.setdefault(interval, []).append(sentence)
    return found


def great_expectations() -> ModuleType:
    """Import Great Expectations, which takes seconds: silent, and without a word to anybody."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations
        import great_expectations.expectations
    return great_expectations


def import_in_background(pipeline: CompiledPipeline) -> None:
    """Begin the import, where a view expects anything, beside what its process waits for."""
    if any(view.expect for view in pipeline.views):
        threading.Thread(target=great_expectations, name="import of great_expectations", daemon=True).start()


def batch_of(gx: ModuleType, presented: pa.Table) -> Any:
    """Hand a table to Great Expectations; decimals as doubles, which is what bounds are."""
    from great_expectations.data_context.types.base import ProgressBarsConfig

    for at, column in enumerate(presented.schema):
        if pa.types.is_decimal(column.type):
            presented = presented.set_column(at, column.name, presented[column.name].cast(pa.float64()))
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas("generation").add_dataframe_asset("presented")
    whole = asset.add_batch_definition_whole_dataframe("whole")
    return whole.get_batch(batch_parameters={"dataframe": presented.to_pandas()})


def suite_of(gx: ModuleType, view: CompiledView) -> Any:
    """Write the view's expectations as a suite."""
    kinds, rules = gx.expectations, []
    for each in view.expect:
        if each.at_least is not None or each.at_most is not None:
            bounds = {"min_value": each.at_least, "max_value": each.at_most}
            rules.append(kinds.ExpectColumnValuesToBeBetween(column=each.column, **bounds))
        if each.not_null:
            rules.append(kinds.ExpectColumnValuesToNotBeNull(column=each.column))
    return gx.ExpectationSuite(name=view.qualified, expectations=rules)


def locate_failures(result: Any, intervals: Sequence[str]) -> list[tuple[str, str]]:
    """Say of a failed expectation in which intervals it fails, and how."""
    config = result.expectation_config
    what = f"{config.kwargs['column']} {format_expectation(config.kwargs)}"
    rows = result.result.get("unexpected_index_list")
    if not rows:
        return [(interval, f"{what}: could not be checked") for interval in sorted(set(intervals))]
    totals = Counter(intervals)
    broken: dict[str, list[Any]] = {}
    for row, value in zip(rows, result.result["unexpected_list"], strict=True):
        broken.setdefault(intervals[row], []).append(value)
    return [
        (interval, f"{what}: {len(values)} of {totals[interval]} rows are not, for example {values[0]}")
        for interval, values in broken.items()
    ]


def format_expectation(bounds: dict[str, Any]) -> str:
    """Say what was expected of a column."""
    low, high = bounds.get("min_value"), bounds.get("max_value")
    said = ([f"at least {low:g}"] if low is not None else []) + (
        [f"at most {high:g}"] if high is not None else []
    )
    return " and ".join(said) or "not null"
