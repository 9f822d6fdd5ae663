"""What a process function may not do, found in its bytecode: ask a clock, dice, the disk, the network, or itself.

It is a lint, not a sandbox: whoever wants to can do all of that. It looks at the methods of a class, and at functions
and classes of the same package that they name. What a method changes in a list or dict that it keeps it cannot see.
"""

from __future__ import annotations

import datetime
import dis
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import unwrap
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
INSIDE = (
    *(
        "io.StringIO",
        "io.BytesIO",
        "os.path",
        "posixpath",
        "pathlib.PurePath",
        "pathlib.PurePosixPath",
        "urllib.parse",
    ),
    *("time.strptime", "time.struct_time", "time.gmtime", "uuid.UUID", "uuid.uuid3", "uuid.uuid5"),
)
"""What of these is neither."""
BUILTINS = {
    "open": "reads files",
    "input": "asks its user",
    "eval": "runs text",
    "exec": "runs text",
    "__import__": "imports what the lint does not see",
    "hash": "is another number in each process",
    "id": "is another number in each process",
}


@dataclass
class Look:
    """A look at a class."""

    home: str
    """The package of the class: the first part of its module's name."""
    seen: set[CodeType] = field(default_factory=set)
    """What was looked at."""
    found: list[str] = field(default_factory=list)
    """What was found."""


@dataclass(frozen=True)
class LookedAt:
    """A function that is looked at."""

    where: str
    """Its name."""
    names: dict[str, Any]
    """What its global names mean."""
    owner: str
    """The argument that is the object whose attributes it may not set; empty if it may."""


def list_unsound_parts(found: type) -> list[str]:
    """List what the methods of a class, and what they call in its package, do that two runs may do differently."""
    look = Look(found.__module__.partition(".")[0])
    look_at_class(look, found, own=True)
    return list(dict.fromkeys(look.found))


def look_at_class(look: Look, found: type, *, own: bool) -> None:
    """Look at the methods of a class; ``own`` is that of the function itself, or one that it is derived from."""
    for name, member in list(vars(found).items()):
        function = unwrap(getattr(member, "__func__", member))
        if isinstance(function, FunctionType) and (name == "__init__" or not name.startswith("__")):
            first = function.__code__.co_varnames[:1]
            owner = first[0] if own and first and name != "__init__" else ""
            part = LookedAt(f"{found.__name__}.{name}", function.__globals__, owner)
            look_at_code(look, function.__code__, part)
        elif callable(member) and not isinstance(member, type):
            look_at_value(look, name, function, f"{found.__name__}.{name}", "")
    for base in found.__bases__:
        if is_at_home(look, base.__module__):
            look_at_class(look, base, own=own)


def is_at_home(look: Look, module: str | None) -> bool:
    """Return whether a module is one of the user's package."""
    return bool(module) and str(module).partition(".")[0] == look.home


def look_at_code(look: Look, code: CodeType, part: LookedAt) -> None:
    """Look at compiled code, and at the functions in it."""
    if code in look.seen:
        return
    look.seen.add(code)
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if said := describe_step(steps, at, part):
            look.found.append(f"{part.where} {said}")
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            look_at_name(look, step.argval, read_dotted(steps, at), part)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            look_at_code(look, inner, part)


def describe_step(steps: Sequence[dis.Instruction], at: int, part: LookedAt) -> str:
    """Say what is wrong with a step by itself; empty if nothing is."""
    step, before = steps[at], steps[at - 1] if at else None
    kept = "what is kept between calls belongs in the state"
    match step.opname:
        case "STORE_GLOBAL" | "DELETE_GLOBAL":
            return f"changes the global {step.argval!r}: {kept}"
        case "STORE_ATTR" if before and part.owner and before.argval == part.owner:
            return f"sets the attribute {step.argval!r}: {kept}"
        case "LOAD_ATTR" | "LOAD_METHOD" if step.argval in CLOCKS and is_calendar(before, part.names):
            return f"calls {step.argval}(): ask `out.at` for the time of a row"
        case "IMPORT_NAME" if step.argval.partition(".")[0] in OUTSIDE and not step.argval.startswith(INSIDE):
            return f"imports {step.argval}"
    return ""


def read_dotted(steps: Sequence[dis.Instruction], at: int) -> str:
    """Read the names behind one, as ``path.join`` behind ``os``."""
    parts = []
    for step in steps[at + 1 :]:
        if step.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            break
        parts.append(str(step.argval))
    return ".".join(parts)


def is_calendar(step: dis.Instruction | None, names: dict[str, Any]) -> bool:
    """Return whether what is loaded is ``date`` or ``datetime``, or a class of theirs."""
    if step is None:
        return False
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_FAST"):
        found = getattr(datetime, str(step.argval), None)
    elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        found = names.get(step.argval)
    else:
        return False
    return isinstance(found, type) and issubclass(found, datetime.date)


def look_at_name(look: Look, name: str, dotted: str, part: LookedAt) -> None:
    """Look at what a global name means."""
    if name in part.names:
        look_at_value(look, name, part.names[name], part.where, dotted)
    elif name in BUILTINS:
        look.found.append(f"{part.where} calls {name}(), which {BUILTINS[name]}")


def look_at_value(look: Look, name: str, found: Any, where: str, dotted: str) -> None:
    """Look at what a name stands for."""
    is_module = isinstance(found, ModuleType)
    module = found.__name__ if is_module else getattr(found, "__module__", None) or type(found).__module__
    own = dotted if is_module else getattr(found, "__qualname__", "")
    outside = module.partition(".")[0] in OUTSIDE or f"{module}.{own}".startswith("numpy.random")
    if outside and not f"{module}.{own}".startswith(INSIDE):
        look.found.append(f"{where} uses {name}, of the module {module}")
    elif isinstance(found, FunctionType) and is_at_home(look, module):
        inner = unwrap(found)
        look_at_code(look, inner.__code__, LookedAt(name, inner.__globals__, ""))
    elif isinstance(found, type) and is_at_home(look, module):
        look_at_class(look, found, own=False)
