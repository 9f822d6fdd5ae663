"""What is stored of users' code with a definition: enough to read a version whose code was edited or deleted since.

The code itself is not stored: a version goes on counting as long as its code is where it was. Afterwards it is read by
what its code declared, and a stand-in takes the place of the code, which can be recognised and not be called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, NoReturn

from seamline.model.definition.asks import Ask
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.processes import Process
from seamline.model.errors import DefinitionError
from seamline.model.user_code import (
    CODE,
    STAND_INS,
    class_hash,
    class_of,
    function_of,
    hash_code,
    make_gone_error,
    name_of,
)

Facts = Mapping[str, Any]
"""What is stored of a class or function, as JSON."""
DECLARED = ("state", "emits", "sides")
CALLED = ("row", "timer", "end", "group")
"""What a class may have that is given the rows of a key."""


def list_code_facts(pipeline: Pipeline) -> dict[str, Facts]:
    """Describe the code that a definition names, by ``module:name``; what cannot be imported is left out."""
    found: dict[str, Facts] = {}
    for name, describe in list_named_code(pipeline):
        with suppress(DefinitionError):
            found[name] = describe(name)
    return found


def list_named_code(pipeline: Pipeline) -> Iterator[tuple[str, Callable[[str], Facts]]]:
    """List the code that a definition names, and what describes it; not that of measures, which reading calls."""
    if pipeline.transform:
        yield name_of(pipeline.transform), describe_function
    for part in pipeline.derive:
        if isinstance(part, Process | CoGroup):
            yield str(part.by), describe_class
        elif isinstance(part, Ask):
            yield str(part.by), describe_function


def describe_function(name: str) -> Facts:
    """Say what a function is."""
    function = function_of(name)
    return {"code": hash_code(function), "awaited": inspect.iscoroutinefunction(function)}


def hash_class(name: str) -> str:
    """Hash a class of a process."""
    return class_hash(class_of(name), private=True)


def describe_class(name: str) -> Facts:
    """Say what a class of a process is: its hash, what it declares, and which methods it has."""
    found = class_of(name)
    declares, methods = (
        {each: getattr(found, each) for each in names if hasattr(found, each)} for names in (DECLARED, CALLED)
    )
    return {
        "code": hash_class(name),
        "declares": {
            each: text if isinstance(text, str) else dict(text)
            for each, text in declares.items()
            if isinstance(text, Mapping if each == "sides" else str)
        },
        "methods": [each for each, method in methods.items() if isinstance(method, FunctionType)],
    }


def is_unchanged(name: str, facts: Facts) -> bool:
    """Return whether code is where it was and does what it did."""
    try:
        code = hash_class(name) if "declares" in facts else hash_code(function_of(name))
    except Exception:  # noqa: BLE001 - what stands there now may be anything
        return False
    return bool(code == facts["code"])


def make_stand_in(name: str, facts: Facts) -> Any:
    """Make what declares what some code did and has its hash; ProtocolError where it is called."""

    def refuse(*_given: Any) -> NoReturn:
        raise make_gone_error(name)

    if "declares" not in facts:

        async def refuse_later(*given: Any) -> NoReturn:
            refuse(*given)

        function: Any = refuse_later if facts["awaited"] else refuse
        setattr(function, CODE, facts["code"])
        return function
    members = {**facts["declares"], **dict.fromkeys(facts["methods"], refuse)}
    return type(name.rpartition(":")[2], (), {**members, CODE: facts["code"]})


@contextmanager
def standing_in(code: Mapping[str, Any]) -> Iterator[None]:
    """Let names of users' code mean something else than what can be imported."""
    before = STAND_INS.set(code)
    try:
        yield
    finally:
        STAND_INS.reset(before)
