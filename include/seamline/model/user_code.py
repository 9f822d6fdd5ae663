"""Code of users that a definition names: found by ``module:name``, and distinguished by what it does."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from seamline.model.errors import DefinitionError, ProtocolError

NAMED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
DEFINITIONS = "seamline_definitions_"
"""How the modules of definition files are named; a task in another process cannot import them."""


CODE = "__seamline_code__"
"""The hash of code that is not there any more, on what stands in for it."""
STAND_INS: ContextVar[Mapping[str, Any]] = ContextVar("stand_ins", default={})  # noqa: B039 - nobody changes it
"""What names mean instead of what can be imported, where a stored definition is read."""
OF_PYTHON = ("_abc_impl", "_is_protocol", "_is_runtime_protocol")
"""What Python keeps in classes that are derived from ABC or Protocol."""


def name_of(code: str | Callable[..., Any]) -> str:
    """Return a function's or a class's name as ``module:name``; text stays as it is.

    So does what is neither, which is refused where a definition is checked.
    """
    if isinstance(code, str) or not callable(code):
        return code
    return f"{getattr(code, '__module__', '')}:{getattr(code, '__qualname__', type(code).__qualname__)}"


def import_user_code(name: str, kind: str) -> Any:
    """Import what ``module:name`` names; DefinitionError where there is nothing that a task can import."""
    if name in (standing := STAND_INS.get()):
        return standing[name]
    module, _, path = name.partition(":")
    if not NAMED.fullmatch(name):
        raise DefinitionError(
            f"{name!r} does not name a {kind} of a module.",
            hint=f'write "module:{kind}"; a lambda cannot be used.',
        )
    if module.startswith(DEFINITIONS) or module == "__main__":
        raise DefinitionError(
            f"{path!r} is defined in the file of the definition, which tasks cannot import.",
            hint="move it into a module of its own and import it from there.",
        )
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"{name!r} cannot be imported: {type(error).__name__}: {error}.",
            hint="the module must be on the path of every process: installed, or in a folder of PYTHONPATH.",
        ) from error
    return found


def function_of(name: str) -> FunctionType:
    """Import a function by ``module:name``; DefinitionError where there is none that a task can import."""
    found = import_user_code(name, "function")
    if not isinstance(found, FunctionType):
        raise DefinitionError(
            f"{name!r} is of type {type(found).__name__}, not a function.",
            hint="define a function (def) that calls it.",
        )
    return found


def class_of(name: str) -> type:
    """Import a class by ``module:name``; DefinitionError where there is none that a task can import."""
    found = import_user_code(name, "class")
    if not isinstance(found, type):
        raise DefinitionError(
            f"{name!r} is of type {type(found).__name__}, not a class.", hint="name the class."
        )
    return found


def is_stand_in(code: Any) -> bool:
    """Return whether something stands for users' code that is not there any more."""
    return hasattr(code, CODE)


def make_gone_error(name: str) -> ProtocolError:
    """Make what is said where code would be called that is not what a version was born with."""
    return ProtocolError(
        f"The code of {name} is not that of this version any more.",
        hint="it was edited, deleted or compiled by another release of Python: put it back, or flip to the version "
        "of the code that is there.",
    )


@cache
def hash_code(function: FunctionType) -> str:
    """Hash what a function does: its bytecode, constants, names and defaults, and those of functions in it.

    Functions that it calls are known by their names only, and each release of Python has other bytecode. What a process
    has hashed once stays that: calls may change a default, as one that remembers.
    """
    return getattr(function, CODE, None) or hash_code_facts(function_facts(function))


@cache
def class_hash(found: type, *, private: bool = False) -> str:
    """Hash what a class does: its methods and constants, those of its bases among them, as the process first saw them.

    Those whose names begin with an underscore where that is asked for, but for ``__...``; ``__init__`` always.
    """
    if is_stand_in(found):
        return str(getattr(found, CODE))
    kept = [
        (name, member_facts(f"{each.__qualname__}.{name}", value))
        for each in found.__mro__[:-1]
        for name, value in sorted(vars(each).items())
        if name == "__init__" or not name.startswith("__" if private else "_")
        if name not in OF_PYTHON
    ]
    return hash_code_facts(kept)


def member_facts(name: str, value: Any) -> tuple[Any, ...]:
    """List what a member of a class is; DefinitionError for what looks different on every run."""
    if isinstance(value, property):
        return tuple(member_facts(name, each) for each in (value.fget, value.fset, value.fdel))
    value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    facts = function_facts(value) if isinstance(value, FunctionType) else constant_facts(value)
    if " at 0x" in repr(facts):
        raise DefinitionError(
            f"{name} is of type {type(value).__name__}, which cannot be recognised as the same by two runs.",
            hint="keep methods and plain constants in the class.",
        )
    return facts


def hash_code_facts(facts: Any) -> str:
    """Hash facts to 12 hex digits."""
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def function_facts(function: FunctionType) -> tuple[Any, ...]:
    """List what a function does."""
    return (
        code_facts(function.__code__),
        constant_facts(function.__defaults__ or ()),
        list_keyword_defaults(function),
    )


def list_keyword_defaults(function: FunctionType) -> list[tuple[str, Any]]:
    """List the defaults of keyword-only arguments."""
    return sorted((name, constant_facts(value)) for name, value in (function.__kwdefaults__ or {}).items())


def code_facts(code: CodeType) -> tuple[Any, ...]:
    """List what compiled code does; never the lines it stands on."""
    constants = [constant_facts(each) for each in code.co_consts]
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_exceptiontable,
    )


def constant_facts(value: Any) -> Any:
    """Return a constant in one way on every run: a set has no order of its own."""
    if isinstance(value, CodeType):
        return code_facts(value)
    if isinstance(value, set | frozenset):
        return ("set", sorted(repr(constant_facts(each)) for each in value))
    if isinstance(value, tuple):
        return ("tuple", [constant_facts(each) for each in value])
    return (type(value).__name__, repr(value))
