"""What a process function may not do, found in its bytecode: ask a clock, dice, the disk, the network, or itself.

It is a lint, not a sandbox: whoever wants to can do all of that. It looks at the methods of a class, and at functions
and classes of the same module that they name.
"""

from __future__ import annotations

import datetime
import dis
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

CLOCKS = frozenset({"now", "utcnow", "today"})
"""Methods of date and datetime by which one asks for the time."""
OUTSIDE = {
    *("random", "secrets", "time", "uuid"),
    *("io", "os", "pathlib", "shutil", "sqlite3", "subprocess", "tempfile"),
    *("http", "requests", "select", "socket", "urllib"),
    *("asyncio", "concurrent", "multiprocessing", "signal", "threading"),
}
"""Modules of what is different each time, or outside."""
BUILTINS = {
    "open": "reads files",
    "input": "asks its user",
    "eval": "runs text",
    "exec": "runs text",
    "hash": "is another number in each process",
    "id": "is another number in each process",
}


def list_unsound_parts(found: type) -> list[str]:
    """List what the methods of a class, and what they call in its module, do that two runs may do differently."""
    seen: set[CodeType] = set()
    return list(dict.fromkeys(look_at_class(found, seen)))


def look_at_class(found: type, seen: set[CodeType]) -> Iterator[str]:
    """Look at the methods of a class."""
    for name, member in list(vars(found).items()):
        function = getattr(member, "__func__", member)
        if isinstance(function, FunctionType):
            at_creation = name == "__init__"
            yield from look_at_function(function, f"{found.__name__}.{name}", seen, at_creation)
    for base in found.__bases__:
        if base.__module__ == found.__module__:
            yield from look_at_class(base, seen)


def look_at_function(
    function: FunctionType, where: str, seen: set[CodeType], at_creation: bool = False
) -> Iterator[str]:
    """Look at a function, and at what it names."""
    yield from look_at_code(function.__code__, function.__globals__, where, seen, at_creation)


def look_at_code(
    code: CodeType, names: dict[str, Any], where: str, seen: set[CodeType], at_creation: bool
) -> Iterator[str]:
    """Look at compiled code, and at the functions in it."""
    if code in seen:
        return
    seen.add(code)
    steps = list(dis.get_instructions(code))
    for before, step in zip([None, *steps], steps, strict=False):
        match step.opname:
            case "STORE_GLOBAL" | "DELETE_GLOBAL":
                yield f"{where} changes the global {step.argval!r}: what is kept between calls belongs in the state"
            case "STORE_ATTR" if not at_creation:
                yield f"{where} sets the attribute {step.argval!r}: what is kept between calls belongs in the state"
            case "LOAD_GLOBAL" | "LOAD_NAME":
                yield from look_at_name(step.argval, names, where, seen)
            case "LOAD_ATTR" | "LOAD_METHOD" if step.argval in CLOCKS and is_calendar(before, names):
                yield f"{where} calls {step.argval}(): ask `out.at` for the time of a row"
            case "IMPORT_NAME" if step.argval.partition(".")[0] in OUTSIDE:
                yield f"{where} imports {step.argval}"
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from look_at_code(inner, names, where, seen, at_creation)


def is_calendar(step: dis.Instruction | None, names: dict[str, Any]) -> bool:
    """Return whether what is loaded is ``date`` or ``datetime``, or a class of theirs."""
    if step is None or step.opname not in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR"):
        return False
    found = names.get(step.argval, getattr(datetime, step.argval, None))
    return isinstance(found, type) and issubclass(found, datetime.date)


def look_at_name(name: str, names: dict[str, Any], where: str, seen: set[CodeType]) -> Iterator[str]:
    """Look at what a global name means."""
    if name not in names:
        if name in BUILTINS:
            yield f"{where} calls {name}(), which {BUILTINS[name]}"
        return
    found, home = names[name], names.get("__name__")
    module = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None) or ""
    if module.partition(".")[0] in OUTSIDE:
        yield f"{where} uses {name}, of the module {module}"
    elif isinstance(found, FunctionType) and module == home:
        yield from look_at_function(found, name, seen)
    elif isinstance(found, type) and module == home and found in vars(sys.modules[module]).values():
        yield from look_at_class(found, seen)
