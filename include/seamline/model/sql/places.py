"""Where in a SQL file each part of a definition stands, for what compiling it finds wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seamline.model.definition.origin import Origin
from seamline.model.errors import DefinitionError


@dataclass(frozen=True)
class SqlOrigin(Origin):
    """Where a pipeline was written in SQL, and each part of it."""

    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Line and column by the field of the definition: ``views[by_shop].where``."""

    def locate(self, problem: DefinitionError) -> DefinitionError:
        """Return a problem with the line and the column of its field, or of the nearest part around it."""
        name = problem.field
        while name and name not in self.places:
            name = name[: max(name.rfind("."), name.rfind("["), 0)]
        if problem.file == self.file and name:
            problem.line, problem.column = self.places[name]
        return problem
