"""The table that the records of a source are changes of: its rows after all changes, as rows to count."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field


@dataclass(frozen=True)
class Changelog:
    """The rows of a table after all changes, of which each record of a source is one.

    The source says with ``key=`` which row of the table a record is about, with ``order=`` which change is newer, and
    with ``deleted=`` what deletes a row. ``View(of="open", window=Global())`` counts the rows that the table has: a
    change takes away what its row was, and adds what it is now. Such a view takes only measures from which rows can be
    taken again.
    """

    name: str
    """The name of the table's rows, which ``View(of=)`` takes; they have the columns of the source."""
    of: str
    """The name of the source whose records are changes."""
    origin: Origin = declare_origin_field()

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return (self.of,)
