"""What a process needs of its source and of its function, and what is wrong with them."""

from __future__ import annotations

from functools import partial
from typing import Any

from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.fold_parts import (
    check_code,
    check_emitted_names,
    check_fold_copies,
    compile_budget,
    compile_where,
    find_columns,
    find_keys,
    measure_span,
)
from seamline.model.compile.record_rules import Record
from seamline.model.definition.processes import Process
from seamline.model.functions.function import load_function
from seamline.model.time.intervals import Grid, parse_duration
from seamline.model.time.zone_clock import MICROSECOND


def process_facts(process: Process, interval: str) -> dict[str, Any]:
    """List all that says what is emitted, in intervals of a length; DefinitionError without a function."""
    return {
        "of": process.of,
        "code": load_function(str(process.by)).code,
        "keys": list(process.keys),
        "columns": sorted(process.columns),
        "where": process.where,
        "begin": parse_duration(process.begin or interval) // MICROSECOND,
        "forget": parse_duration(process.forget) // MICROSECOND if process.forget else None,
        "version": process.version,
    }


def compile_process(
    process: Process, record: Record, grid: Grid, problems: Problems
) -> CompiledProcess | None:
    """Compile a process of the rows of a source; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{process.name}]"
    keys = find_keys(process, record, problems)
    check_fold_copies(process, process.of, record, problems)
    read = find_columns(process, "columns", process.columns, process.of, record, problems)
    where = compile_where(process, record, problems)
    function = problems.attempt(f"{place}.by", process.origin, partial(load_function, str(process.by)))
    begin = problems.attempt(f"{place}.begin", process.origin, partial(measure_span, process.begin, grid))
    forget = None
    if process.forget:
        forget = problems.attempt(f"{place}.forget", process.origin, partial(parse_duration, process.forget))
    if function:
        check_code(process, function, problems)
        check_emitted_names(process, "by", function, keys, problems)
    budget = compile_budget(process, problems)
    if function is None or begin is None or budget is None or len(problems.found) > before:
        return None
    columns = tuple(dict.fromkeys([*keys, *(read or record.schema.fields)]))
    return CompiledProcess(
        process.name,
        (JoinSide(process.of, "", columns, where),),
        tuple(keys),
        function,
        begin,
        forget,
        record.selective,
        process.version,
        frozenset(each.name for each in record.lookups),
        process.copies,
        budget,
    )
