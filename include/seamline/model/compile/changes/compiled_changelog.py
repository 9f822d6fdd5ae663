"""A changelog made ready for the engines: which columns of its source's rows are carried, and what makes a change."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from seamline.model.compile.changes.row_changes import RowChanges
from seamline.model.compile.compiled_join import JoinSide
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import Field, Schema, SqlType, TypeKind

DELETED = "_deleted"
"""The column that says of a change whether it deletes its row."""
SIGN = "_sign"
"""The column that says whether a row is added, 1, or taken away, -1."""


@dataclass(frozen=True)
class CompiledChangelog:
    """A table's changes whose names and types are known to fit."""

    name: str
    """The name of the table's rows."""
    source: str
    """The source whose rows are changes."""
    changes: RowChanges
    """Which row each is a change of."""
    columns: tuple[Field, ...]
    """The columns of the table's rows that views count by."""
    selective: bool
    """Whether rows of the source say whether they are selected; those that are not are no changes."""

    @property
    def id(self) -> str:
        """The name of an index of its rows: changelogs of other versions of a view may carry other columns."""
        deleted = self.changes.deleted
        said = [self.source, self.changes.key, self.changes.order, deleted and deleted.text, self.columns]
        return f"{self.name}/{hashlib.sha256(repr(said).encode()).hexdigest()[:12]}"

    @property
    def schema(self) -> Schema:
        """The columns of a row of the table."""
        return Schema(self.columns)

    @cached_property
    def sides(self) -> tuple[JoinSide]:
        """The rows that are read: key, order, columns, and whether each deletes its row."""
        order = [self.changes.order] if self.changes.order else []
        read = dict.fromkeys([*self.changes.key, *order, *self.columns])
        flag = Field(DELETED, SqlType(TypeKind.BOOLEAN), nullable=False)
        return (JoinSide(self.source, "", (*read, flag), made={DELETED: self.deletes}),)

    @property
    def deletes(self) -> Expression:
        """True of a row that deletes, false of any other."""
        said = self.changes.deleted
        if said is None:
            return compile_expression("FALSE", Schema(()))
        return replace(said, spark=f"(({said.spark}) IS TRUE)", duckdb=f"(({said.duckdb}) IS TRUE)")

    @property
    def lookups(self) -> frozenset[str]:
        """The look-ups that its rows are made with: none, as another row then would change all that came after it."""
        return frozenset()

    @property
    def copies(self) -> bool:
        """Whether copies of rows may count: a change that is there twice comes to the same."""
        return True

    @property
    def question(self) -> str:
        """The id of a question that its rows wait for: none."""
        return ""

    @property
    def before(self) -> timedelta:
        """How far before an interval rows may be that are counted in it: zero, as a change is counted at its time."""
        return timedelta(0)

    @property
    def after(self) -> timedelta:
        """How far behind it they may be."""
        return timedelta(0)

    @property
    def size(self) -> int:
        """How far before the newest snapshot the oldest may be, in microseconds: any time, as a build may need it."""
        return sys.maxsize

    def narrowed(self, used: frozenset[str]) -> CompiledChangelog:
        """Carry no column but those in ``used``."""
        return replace(self, columns=tuple(each for each in self.columns if each.name in used))
