"""What a load costs, in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.scale import answering, building, parsing
from benchmarks.scale.bottleneck import Costs, hours_of, list_limits
from benchmarks.scale.compaction import History
from benchmarks.scale.load import Load
from benchmarks.scale.requests import MONTH, dollars_a_month
from benchmarks.scale.units import Units

DAY = 24
"""Upkeeps."""


def describe(load: Load, units: Units) -> Iterator[str]:
    """Describe a load's costs, and what ends first."""
    costs = Costs(load, units)
    each = costs.epoch
    yield (
        f"an epoch: {each.records:,.0f} records every {costs.period:,.2f} s, {each.tasks:,} tasks, "
        f"{each.cpu:,.2f} CPU s, {each.seconds(load.cores):,.2f} s, of which {each.serial:,.3f} s are one core's "
        f"and {each.waiting:,.3f} s waiting"
    )
    yield (
        f"the stream: {costs.cores:,.2f} cores, {costs.stream_mb:,.0f} MB; "
        f"at most {costs.most_events:,.0f} events/s"
    )
    yield from describe_day(hours_of(costs.pace, load.upkeep, DAY), costs)
    yield f"an upkeep: {building.upkeep_seconds(load, costs.history, units):,.1f} s"
    yield (
        f"the run of an interval: {costs.run.planning + costs.run.building:,.1f} CPU s, "
        f"{costs.run.seconds(load.cores):,.1f} s"
    )
    yield (
        f"an answer after an epoch: {answering.answer_seconds(load, units) * 1000:,.0f} ms; the first of a process "
        f"{answering.first_answer_seconds(load, costs.history.most_slice_files, units):,.1f} s"
    )
    yield f"serving tables: {answering.serving_seconds(load, units):,.2f} s each {load.serve_every:g} s"
    yield (
        f"Airflow: a parse {parsing.parse_seconds(load, units, changed=True):,.1f} s, a look at streams "
        f"{parsing.reconcile_seconds(load, units):,.1f} s"
    )
    if load.on_store:
        told = ", ".join(f"{count:,.1f} {kind}" for kind, count in costs.requests.items())
        yield f"requests a second: {told}; {dollars_a_month(costs.requests, units):,.0f} dollars a month"
    yield ""
    for limit in list_limits(load, units):
        yield f"{limit.used:10.1%}  {limit.name:34} {limit.knob} ({limit.how})"


def describe_day(told: History, costs: Costs) -> Iterator[str]:
    """Describe what a day of hourly upkeeps leaves."""
    yield (
        f"after {DAY} upkeeps: {told.slice_files:,} slice files of a view (at most {told.most_slice_files:,}), "
        f"{told.master_files:,} of the master (at most {told.most_master_files:,}); logs of {told.slice_entries:,}, "
        f"{told.master_entries:,} and {told.ledger_entries:,} entries (slices, master, ledger)"
    )
    yield f"the master's log: {costs.entry_bytes:,.0f} bytes an epoch"


def store_bytes_a_month(load: Load, units: Units) -> float:
    """Return the bytes that a month's records take in the master."""
    return load.events * MONTH * units["stored"]
