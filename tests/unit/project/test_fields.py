"""Fields that people write in a definition have a sentence each, where an editor shows it."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields, is_dataclass
from textwrap import dedent

import pytest

import seamline

DECLARED = [each for name in seamline.__all__ if is_dataclass(each := getattr(seamline, name))]
OURS = {"origin"}
"""Set by what reads a definition."""


def documented(kind: type) -> set[str]:
    """List the fields of a class that a text follows."""
    [made] = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(made, ast.ClassDef)
    return {
        field.target.id
        for field, text in zip(made.body, made.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_every_field_of_a_definition_is_documented(kind: type) -> None:
    """Who reads the class alone must know the unit of each, and what an empty one means."""
    assert {field.name for field in fields(kind)} - OURS <= documented(kind)
