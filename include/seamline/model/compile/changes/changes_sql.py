"""The changes of a table's rows in SQL, one text for both engines: what each takes away, and what it adds.

Rows go in the order of the log. A row is a change unless an earlier one of its key has a greater order. What its row of
the table was before is told by the last change before it. So what a change takes away and adds depends on nothing that
comes later (docs/protocol.md, rule 29).
"""

from __future__ import annotations

from collections.abc import Iterable

from seamline.model.compile.changes.compiled_changelog import DELETED, SIGN, CompiledChangelog
from seamline.model.compile.derived_rows import PLACE, Dialect
from seamline.model.types.schema import Field

GREATEST = "_greatest"
"""The column of the greatest order of a key so far."""
LOGGED = ("_epoch", "_partition", "_offset", "_topic", "_topic_id")
"""The columns by which the rows of a log are in order."""
OF_ROW = {
    "_epoch": "BIGINT",
    "_partition": "INT",
    "_offset": "BIGINT",
    "_topic": "STRING",
    "_topic_id": "STRING",
    "_event_time": "TIMESTAMP",
}
"""What a change has beside its columns, with the types."""


def list_image_fields(changelog: CompiledChangelog) -> tuple[Field, ...]:
    """List the columns that what is known of a row of the table has: those of its key first, then those counted."""
    return tuple(dict.fromkeys([*changelog.changes.key, *changelog.columns]))


def list_images_sql(changelog: CompiledChangelog, relation: str, dialect: Dialect) -> str:
    """Write what is known of rows (``list_image_fields``, ``GREATEST`` and ``DELETED``) as rows before all others."""
    columns = [
        "0 AS _new",
        *(f"{dialect.null(type)} AS {name}" for name, type in OF_ROW.items()),
        *(dialect.quote(each.name) for each in list_image_fields(changelog)),
        f"{GREATEST} AS _order",
        DELETED,
    ]
    return f"SELECT {', '.join(columns)} FROM {relation}"


def list_new_rows_sql(changelog: CompiledChangelog, relation: str, dialect: Dialect) -> str:
    """Write rows of a changelog's side as those behind them."""
    order = changelog.changes.order
    columns = [
        "1 AS _new",
        *OF_ROW,
        *(dialect.quote(each.name) for each in list_image_fields(changelog)),
        f"{dialect.quote(order.name) if order else dialect.null('BIGINT')} AS _order",
        DELETED,
    ]
    return f"SELECT {', '.join(columns)} FROM {relation}"


def changes_sql(changelog: CompiledChangelog, images: str, rows: str, dialect: Dialect) -> str:
    """Write the changes among rows, in whatever order they are, and ``images``, what was known before all of them.

    Both are relations. Each has what its row was: ``_was_there``, and the columns that views count by, ``_was_`` and a
    number; and whether it is the last one of its key, ``_last``. What was known is among them, not as ``_new``.
    """
    quote = dialect.quote
    key = ", ".join(quote(each.name) for each in changelog.changes.key)
    order = ", ".join(["_new", *LOGGED])
    read = f"{list_images_sql(changelog, images, dialect)} UNION ALL {list_new_rows_sql(changelog, rows, dialect)}"
    ranked = (
        f"SELECT *, max(_order) OVER (PARTITION BY {key} ORDER BY {order} "
        f"ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _before FROM ({read})"
    )
    changes = (
        f"SELECT * FROM ({ranked}) WHERE _new = 0 OR _order IS NULL OR _before IS NULL OR _order >= _before"
    )
    ordered = f"OVER (PARTITION BY {key} ORDER BY {order})"
    was = [
        f"coalesce(NOT lag({DELETED}) {ordered}, FALSE) AS _was_there",
        *(
            f"lag({quote(each.name)}) {ordered} AS _was_{number}"
            for number, each in enumerate(changelog.columns)
        ),
        f"lead(_new) {ordered} IS NULL AS _last",
        f"greatest(_order, _before) AS {GREATEST}",
    ]
    return f"SELECT *, {', '.join(was)} FROM ({changes})"


def contributions_sql(changelog: CompiledChangelog, changes: str, dialect: Dialect) -> str:
    """Write what new changes of a relation take away and add: the columns that views count by, and ``SIGN``."""
    names = [dialect.quote(each.name) for each in changelog.columns]
    own = [f"CASE WHEN {SIGN} = 1 THEN {name} ELSE _was_{n} END AS {name}" for n, name in enumerate(names)]
    columns = ", ".join([SIGN, *PLACE, "_epoch", "_event_time", *own])
    there = f"({SIGN} = 1 AND NOT {DELETED}) OR ({SIGN} = -1 AND _was_there)"
    # The changes are worked out once for both.
    both = f"{changes} c CROSS JOIN (VALUES (1), (-1)) AS s({SIGN})"
    return f"SELECT {columns} FROM {both} WHERE _new = 1 AND ({there})"


def last_images_sql(changelog: CompiledChangelog, changes: str, dialect: Dialect) -> str:
    """Write what is known of each key after the changes of a relation, as ``list_images_sql`` reads it.

    Without an order a deleted row is as one that never was.
    """
    columns = [*(dialect.quote(each.name) for each in list_image_fields(changelog)), GREATEST, DELETED]
    forgotten = "" if changelog.changes.order else f" AND NOT {DELETED}"
    return f"SELECT {', '.join(columns)} FROM {changes} WHERE _last{forgotten}"


def same_key_sql(changelog: CompiledChangelog, one: str, other: str, dialect: Dialect) -> str:
    """Write that two rows are of one key: NULL is a value like any other."""
    names: Iterable[str] = (dialect.quote(each.name) for each in changelog.changes.key)
    return " AND ".join(f"{one}.{name} {dialect.same} {other}.{name}" for name in names)
