"""What an epoch changes in an as-of join: new left rows with their versions, and those that have a later one now."""

from __future__ import annotations

from collections.abc import Iterable

from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.joined_index import JoinedIndex
from seamline.lake.engine.near_rows import Rows, around_sql, near_sql
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.derived_rows import PLACE, VERSION_ORDER, as_of_sql

ADDED, WITHDRAWN = "as_of_added", "as_of_withdrawn"
"""The relations of what an epoch adds, and of what it takes away; they stand until the next."""
NEW = "SELECT * FROM new_{}"


def change_latest(index: JoinedIndex, new: Rows, older: Rows, columns: Iterable[str] = ()) -> None:
    """Make the relations ``ADDED`` and ``WITHDRAWN`` of an epoch of ``new`` rows, with some columns, or all.

    ``older`` are the rows below the horizon that they may be joined with (``find_older_spans``). Of earlier left rows
    those change that find a new version which is later than the one they had.
    """
    join, con = index.join, index.con
    mine = [f"{{}}.{quote_identifier(each)}" for each in columns] or ["{}.*"]
    of_left, of_found, of_before = (", ".join(mine).replace("{}", alias) for alias in "lfb")
    index.register(new_left=new[0], new_right=new[1], older_left=older[0], older_right=older[1])
    near_right, near_left = near_sql(join, new)
    rights = index.find_rows("near_right", 1, 0, near_right)
    known = f"{rights} UNION ALL BY NAME {NEW.format('right')}"
    added = f"SELECT {of_left} FROM ({as_of_sql(join, NEW.format('left'), known, DUCKDB)}) l"
    lefts = index.find_rows("near_left", 0, 1, near_left)
    found = as_of_sql(join, lefts, NEW.format("right"), DUCKDB)
    con.execute(f"CREATE OR REPLACE TEMP TABLE found AS FROM ({found}) WHERE _right_event_time IS NOT NULL")
    before = as_of_sql(
        join, found_lefts_sql(lefts), index.find_rows("rights_before", 1, 1, around_sql(join, new)), DUCKDB
    )
    con.execute(f"CREATE OR REPLACE TEMP TABLE before AS {before}")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE {ADDED} AS {added} UNION ALL SELECT {of_found} FROM {REPLACED}"
    )
    con.execute(f"CREATE OR REPLACE TEMP TABLE {WITHDRAWN} AS SELECT {of_before} FROM {REPLACED}")


def found_lefts_sql(lefts: str) -> str:
    """Write the left rows that have found a new version."""
    places = ", ".join(PLACE)
    return f"SELECT * FROM ({lefts}) WHERE ({places}) IN (SELECT ({places}) FROM found)"


def replaced_sql() -> str:
    """Write the left rows, as ``found`` has them, whose version is later than that of ``before``, which may be none."""
    same = " AND ".join(f"f.{name} = b.{name}" for name in PLACE)
    later, former = (", ".join(f"{alias}._right{name}" for name in VERSION_ORDER) for alias in "fb")
    return f"found f JOIN before b ON {same} AND (b._right_event_time IS NULL OR ({later}) > ({former}))"


REPLACED = replaced_sql()
