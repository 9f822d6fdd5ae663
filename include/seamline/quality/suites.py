"""Suites that users declare, evaluated by Great Expectations over the presented rows of each interval."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.definition.expectations import ExpectationSuite

log = logging.getLogger("seamline.batch")
SUMMARY = {"result_format": "SUMMARY"}
HOLDS_BACK = "critical"
LONGEST = 200
"""Characters of an observed value that a sentence shows."""


@dataclass(frozen=True)
class SuiteResults:
    """What came of a view's suites."""

    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """A sentence for each expectation that was not met, by interval id; intervals where all were are left out."""
    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The library's results as JSON, by interval id."""


def list_suites(view: CompiledView) -> list[ExpectationSuite]:
    """List the suites of a view."""
    return [each for each in view.expect if isinstance(each, ExpectationSuite)]


def count_suite_expectations(view: CompiledView) -> int:
    """Count the expectations in the suites of a view."""
    return sum(len(suite.expectations) for suite in list_suites(view))


def evaluate_suites(view: CompiledView, presented: pa.Table) -> SuiteResults:
    """Evaluate the suites of a view, interval by interval.

    ``presented`` has a row per interval, grouping set, keys and window, with all measures. An interval without rows
    is not evaluated: an empty table meets nearly everything.
    """
    if not list_suites(view) or not presented.num_rows:
        return SuiteResults()
    intervals = sorted(pc.unique(presented["interval"]).to_pylist())
    try:
        gx = import_great_expectations()
        suite, batches = make_suite(gx, view), open_batch_definition(gx)
    except Exception as error:  # noqa: BLE001 - a user's own code may raise anything
        return SuiteResults({interval: [describe_error(error)] for interval in intervals})
    failed, results = {}, {}
    for interval in intervals:
        own = presented.filter(pc.equal(presented["interval"], interval)).drop_columns(["interval"])
        try:
            batch = batches.get_batch(batch_parameters={"dataframe": convert_to_frame(own)})
            found = batch.validate(suite, result_format=SUMMARY).to_json_dict()
        except Exception as error:  # noqa: BLE001 - see above
            failed[interval] = [describe_error(error)]
            continue
        results[interval] = {**found, "suite_name": f"{view.qualified} {interval}"}
        if sentences := list(describe_failures(found)):
            failed[interval] = sentences
    return SuiteResults(failed, results)


def import_great_expectations() -> ModuleType:
    """Import the library, which takes seconds: silent, and without a word to anybody."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations
        import great_expectations.expectations
    return great_expectations


def import_in_background(pipeline: CompiledPipeline) -> None:
    """Begin the import, where a view has a suite, beside what its process waits for."""
    if any(list_suites(view) for view in pipeline.views):
        name = "import of great_expectations"
        threading.Thread(target=import_great_expectations, name=name, daemon=True).start()


def make_suite(gx: ModuleType, view: CompiledView) -> Any:
    """Make the library's suite of all that a view declares; its own errors for types or arguments that it lacks."""
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    suites = list_suites(view)
    for module in (name for suite in suites for name in suite.modules):
        import_module(module)
    rules = [
        # A configuration that is wrong raises here; the suite would leave it out.
        ExpectationConfiguration(**{**each, "kwargs": dict(each.get("kwargs", {}))}).to_domain_obj()
        for suite in suites
        for each in suite.expectations
    ]
    return gx.ExpectationSuite(name=view.qualified, expectations=rules)


def open_batch_definition(gx: ModuleType) -> Any:
    """Make what a frame of pandas is validated by."""
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas("generation").add_dataframe_asset("presented")
    return asset.add_batch_definition_whole_dataframe("whole")


def convert_to_frame(presented: pa.Table) -> Any:
    """Convert a table to pandas; decimals become doubles, which is what bounds are."""
    for at, column in enumerate(presented.schema):
        if pa.types.is_decimal(column.type):
            presented = presented.set_column(at, column.name, presented[column.name].cast(pa.float64()))
    return presented.to_pandas()


def describe_error(error: Exception) -> str:
    """Say that a suite cannot be evaluated: the certificate is red, and what was built is kept."""
    log.warning("A suite cannot be evaluated", exc_info=error)
    return f"the suite cannot be evaluated: {type(error).__name__}: {error}"[: 2 * LONGEST]


def describe_failures(result: Mapping[str, Any]) -> Iterator[str]:
    """Write a sentence for each expectation that was not met and that holds an interval back."""
    for each in result["results"]:
        config = each["expectation_config"]
        if not each["success"] and config.get("severity", HOLDS_BACK) == HOLDS_BACK:
            given = ", ".join(
                f"{name}={value!r}" for name, value in config["kwargs"].items() if name != "batch_id"
            )
            yield f"{config['type']}({given}): {describe_observation(each)}"


def describe_observation(result: Mapping[str, Any]) -> str:
    """Say what was found in place of what was expected."""
    found, trouble = result["result"], find_exception(result["exception_info"])
    if trouble:
        return f"cannot be evaluated: {trouble}"[:LONGEST]
    if found.get("unexpected_count") is not None:
        examples = found.get("partial_unexpected_list") or []
        example = f", for example {examples[0]}" if examples else ""
        return f"{found['unexpected_count']} of {found.get('element_count')} rows are not{example}"[:LONGEST]
    return f"observed {found.get('observed_value')}"[:LONGEST]


def find_exception(info: Mapping[str, Any]) -> str:
    """Find the message of what went wrong in the evaluation, which may be kept by metric; empty if nothing did."""
    each = [info, *(found for found in info.values() if isinstance(found, Mapping))]
    return next((str(one["exception_message"]) for one in each if one.get("exception_message")), "")
