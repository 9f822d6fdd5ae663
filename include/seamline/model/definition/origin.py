"""Where in the author's file a part of a definition was written."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from seamline.model.errors import DefinitionError

PACKAGE = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True)
class Origin:
    """Where the author wrote it."""

    file: str
    """The path of the file."""
    line: int
    """The line, from 1."""

    def locate(self, problem: DefinitionError) -> DefinitionError:
        """Return a problem of the definition that was written here, with its place as near as it is known."""
        return problem


def find_caller_origin() -> Origin:
    """Find the nearest caller outside this package (and outside generated dataclass code)."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((PACKAGE, "<")):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def declare_origin_field() -> Origin:
    """Declare the field that keeps the author's line; it takes no part in equality or fingerprints."""
    return field(default_factory=find_caller_origin, compare=False, repr=False, kw_only=True)
