"""Fields of public dataclasses have a sentence each, where an editor shows it."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import dedent
from typing import TypeGuard

import pytest

import seamline

DECLARED = [each for name in seamline.__all__ if is_dataclass(each := getattr(seamline, name))]
OURS = {"origin"}
"""Set by what reads a definition."""


def documented(kind: type) -> set[str]:
    """List the fields of a class, and of those that it is one of, that a text follows."""
    found = set()
    for each in filter(is_dataclass, kind.__mro__):
        [made] = ast.parse(dedent(inspect.getsource(each))).body
        assert isinstance(made, ast.ClassDef)
        found |= documented_in(made)
    return found


def documented_in(made: ast.ClassDef) -> set[str]:
    """List the fields of a class's source that a text follows."""
    return {
        field.target.id
        for field, text in zip(made.body, made.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def own_fields(made: ast.ClassDef) -> set[str]:
    """List the fields that a class's source adds, but for constants of the class and what we set ourselves."""
    return {
        field.target.id
        for field in made.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if not ast.unparse(field.annotation).startswith("ClassVar") and not field.target.id.startswith("_")
    } - OURS


def is_public_dataclass(made: ast.AST) -> TypeGuard[ast.ClassDef]:
    """Return whether a piece of source is one."""
    return (
        isinstance(made, ast.ClassDef)
        and not made.name.startswith("_")
        and any("dataclass" in ast.unparse(each) for each in made.decorator_list)
    )


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_every_field_of_a_definition_is_documented(kind: type) -> None:
    """Who reads the class alone must know the unit of each, and what an empty one means."""
    assert {field.name for field in fields(kind)} - OURS <= documented(kind)


def test_every_field_of_a_public_dataclass_is_documented() -> None:
    """Most of them are read by people who did not write them: each says its unit, its shape, and what none means."""
    bare = []
    for path in sorted(Path(inspect.getfile(seamline)).parent.rglob("*.py")):
        for made in ast.walk(ast.parse(path.read_text())):
            if is_public_dataclass(made):
                bare += [
                    f"{path.name}: {made.name}.{name}" for name in own_fields(made) - documented_in(made)
                ]
    assert bare == []
