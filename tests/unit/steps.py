"""Functions for ``transform=``: a module that tasks import by name."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc

notafunction = 3


def words(rows: pa.Table) -> pa.Table:
    """Count the words of a text; texts that start with # are left out, and "boom" breaks it."""
    kept = rows.filter(pc.invert(pc.starts_with(rows["text"], "#")))
    if "boom" in kept["text"].to_pylist():
        raise ValueError("no word for it")
    return kept.append_column("words", pc.list_value_length(pc.split_pattern(kept["text"], " ")))


def backwards(rows: pa.Table) -> pa.Table:
    """Return the rows in another order, and text where a number was declared for "x"."""
    found = words(rows)
    numbers = pa.array(["x" if text == "x" else "7" for text in found["text"].to_pylist()])
    made = found.drop_columns(["_topic", "words"]).append_column("words", numbers)
    return made.take(pa.array(range(made.num_rows - 1, -1, -1), pa.int64()))


def twice(rows: pa.Table) -> pa.Table:
    """Return every row twice."""
    return pa.concat_tables([words(rows)] * 2)


def nothing(rows: pa.Table) -> None:
    """Forget to return."""


def nameless(rows: pa.Table) -> pa.Table:
    """Forget the column."""
    return rows


def priced(rows: pa.Table) -> pa.Table:
    """Read a price as a double."""
    return rows.append_column("price", rows["text"].cast(pa.float64()))


def deadly(rows: pa.Table) -> pa.Table:
    """End the process at a text, as a library does that is not Python's."""
    if "fugu" in rows["text"].to_pylist():
        os._exit(9)
    return rows.append_column("length", pc.utf8_length(rows["text"]))


def deadly_number(rows: pa.Table) -> pa.Table:
    """End the process at a number."""
    if -7777 in rows["id"].to_pylist():
        os._exit(9)
    return rows.append_column("twice", pc.multiply(rows["id"], 2))


def lines(rows: pa.Table) -> pa.Table:
    """Return a row for each word of a text, the last word first; "boom" breaks it, and "-" is no word."""
    made = [
        {"_partition": row["_partition"], "_offset": row["_offset"], "word": word, "letters": len(word)}
        for row in reversed(rows.to_pylist())
        for word in reversed(row["text"].split())
    ]
    if "boom" in rows["text"].to_pylist():
        raise ValueError("no word for it")
    types = {"_partition": pa.int32(), "_offset": pa.int64(), "word": pa.string(), "letters": pa.int64()}
    made = [{**row, "word": None} if row["word"] == "-" else row for row in made]
    return pa.Table.from_pylist(made, schema=pa.schema(types))


def strangers(rows: pa.Table) -> pa.Table:
    """Return rows of a record that was not given."""
    made = lines(rows)
    at = made.column_names.index("_offset")
    return made.set_column(at, "_offset", pc.add(made["_offset"], 1000))


def receipt_lines(rows: pa.Table) -> pa.Table:
    """Return a row for each line of a receipt, such as "apple 3;bread 1"."""
    found = [
        {"_partition": row["_partition"], "_offset": row["_offset"], "item": item, "pieces": int(pieces)}
        for row in rows.to_pylist()
        for item, pieces in (line.split() for line in row["text"].split(";") if line)
    ]
    types = {"_partition": pa.int32(), "_offset": pa.int64(), "item": pa.string(), "pieces": pa.int64()}
    return pa.Table.from_pylist(found, pa.schema(types))


def nested(rows: pa.Table) -> pa.Table:
    """Return rows of all kinds of columns, two for each record."""
    twice = pa.concat_tables([rows, rows]).select(["_topic", "_partition", "_offset"])
    for name, value in (
        ("price", 0.5),
        ("tags", ["a"]),
        ("facts", [("k", 1)]),
        ("part", {"x": [True]}),
        ("raw", b"r"),
    ):
        twice = twice.append_column(name, pa.array([value] * twice.num_rows, MADE.get(name)))
    return twice


MADE = {"facts": pa.map_(pa.string(), pa.int64())}
"""Types that pyarrow does not tell from values."""
