"""What a definition is refused for: where, in which words, and with a hint."""

from __future__ import annotations

from seamline import Pipeline
from seamline.model.compile.compiled_pipeline import compile_with_problems


def require_refused(pipeline: Pipeline, field: str, words: str, file: str) -> None:
    """Require that the first problem of a field says some words, has a hint, and names the file of the definition."""
    compiled, problems = compile_with_problems(pipeline)
    assert compiled is None
    found = [each for each in problems if each.field.startswith(field)]
    assert found, [(each.field, each.message) for each in problems]
    assert words in f"{found[0].message} Hint: {found[0].hint}"
    assert found[0].hint
    assert found[0].file == file
