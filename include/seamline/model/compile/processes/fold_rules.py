"""Which folds a definition declares, of whichever kind, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamline.model.compile.derived_names import check_derived_name
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.group_rules import compile_group, group_facts
from seamline.model.compile.processes.pattern_rules import compile_pattern, pattern_facts
from seamline.model.compile.processes.process_rules import compile_process, process_facts
from seamline.model.compile.record_rules import Record
from seamline.model.compile.sources import split_process_name
from seamline.model.definition.folds import Folded
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline
from seamline.model.time.intervals import Grid


def compile_folds(
    pipeline: Pipeline, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> dict[str, CompiledProcess]:
    """Compile the folds of a pipeline by name; note the problems of those that are left out."""
    found: dict[str, CompiledProcess] = {}
    for each in pipeline.derive if records else ():
        if not isinstance(each, Folded) or not check_derived_name(pipeline, each, records, problems):
            continue
        if check_fold_sources(each, records, problems) and (
            made := compile_fold(each, records, grid, problems)
        ):
            found[each.name] = made
    return found


def check_fold_sources(folded: Folded, records: Mapping[str, Record], problems: Problems) -> bool:
    """Note sources that a pipeline does not have, and return whether there are none."""
    named = {"left": folded.left, "right": folded.right} if isinstance(folded, CoGroup) else {"of": folded.of}
    for setting, name in named.items():
        if name not in records:
            known = ", ".join(filter(None, records)) or "none: sources that rows are derived from have names"
            problems.note(
                f"derive[{folded.name}].{setting}",
                folded.origin,
                f"There is no source {name!r}.",
                f"the sources are {known}.",
            )
    return records.keys() >= {*named.values()}


def compile_fold(
    folded: Folded, records: Mapping[str, Record], grid: Grid, problems: Problems
) -> CompiledProcess | None:
    """Compile a fold of the rows of sources that there are; None where it has problems."""
    if isinstance(folded, CoGroup):
        return compile_group(folded, records, grid, problems)
    if isinstance(folded, Pattern):
        return compile_pattern(folded, records[folded.of], grid, problems)
    return compile_process(folded, records[folded.of], grid, problems)


def find_fold(pipeline: Pipeline, names: Sequence[str]) -> Folded | None:
    """Find the fold of which a view counts emitted rows; None where it counts others."""
    if len(names) != 1:
        return None
    name, _ = split_process_name(names[0])
    return next((each for each in pipeline.derive if isinstance(each, Folded) and each.name == name), None)


def fold_facts(folded: Folded, side: str, interval: str) -> dict[str, Any]:
    """List all that says which rows a side has, in intervals of a length; DefinitionError without a function."""
    if isinstance(folded, CoGroup):
        return {"group": group_facts(folded), "side": side}
    if isinstance(folded, Pattern):
        return {"pattern": pattern_facts(folded, interval), "side": side}
    return {**process_facts(folded, interval), "side": side}
