"""A user's own step from parsed columns to more columns: a Python function on Arrow tables, found by name."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from seamline.model.errors import DefinitionError
from seamline.model.schema import Schema

NAMED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
DEFINITIONS = "seamline_definitions_"
"""How the modules of definition files are named; a task in another process cannot import them."""


@dataclass(frozen=True)
class Transform:
    """A function by its name, the columns that it adds, and the names of the parsed ones that it is given."""

    name: str
    schema: Schema
    given: tuple[str, ...]


def name_of(function: str | Callable[..., Any]) -> str:
    """Give a function's name as ``module:name``; text stays as it is."""
    if isinstance(function, str):
        return function
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', function)}"


def function_of(name: str) -> FunctionType:
    """Import a function by ``module:name``; DefinitionError where there is none that a task can import."""
    module, _, path = name.partition(":")
    if not NAMED.fullmatch(name):
        raise DefinitionError(
            f"{name!r} names no function of a module.", hint='write "module:function"; it is no lambda.'
        )
    if module.startswith(DEFINITIONS) or module == "__main__":
        raise DefinitionError(
            f"{path!r} stands in the file of the definition, which tasks cannot import.",
            hint="put it into a module of its own and import it from there.",
        )
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise DefinitionError(
            f"{name!r} cannot be imported: {type(error).__name__}: {error}.",
            hint="the module must be on the path of every process: installed, or in a folder of PYTHONPATH.",
        ) from error
    if not isinstance(found, FunctionType):
        raise DefinitionError(
            f"{name!r} is of type {type(found).__name__}, not a function.",
            hint='write a "def" that calls it.',
        )
    return found


def code_hash(function: FunctionType) -> str:
    """Hash what a function does: its bytecode, constants, names and defaults, and those of functions in it.

    Functions that it calls are known by their names only, and each release of Python has other bytecode.
    """
    said = repr((code_facts(function.__code__), constant(function.__defaults__ or ()), defaults(function)))
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def defaults(function: FunctionType) -> list[tuple[str, Any]]:
    """List the defaults of keyword-only arguments."""
    return sorted((name, constant(value)) for name, value in (function.__kwdefaults__ or {}).items())


def code_facts(code: CodeType) -> tuple[Any, ...]:
    """List what compiled code does; never the lines it stands on."""
    constants = [constant(each) for each in code.co_consts]
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_exceptiontable,
    )


def constant(value: Any) -> Any:
    """Give a constant in one way on every run: a set has no order of its own."""
    if isinstance(value, CodeType):
        return code_facts(value)
    if isinstance(value, frozenset):
        return ("set", sorted(repr(constant(each)) for each in value))
    if isinstance(value, tuple):
        return ("tuple", [constant(each) for each in value])
    return (type(value).__name__, repr(value))
