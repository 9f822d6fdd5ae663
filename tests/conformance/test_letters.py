"""upper and lower are of all of Unicode, not only of the letters that a test would think of."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seamline.model.expressions import compile_expression
from seamline.model.types.schema import Schema

SCHEMA = Schema.parse("s STRING")
LETTERS = [chr(each) for each in (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200))]
"""All that Unicode has, but for ideographs and what is private or not given out."""
RUN = 128


WORDS = ["ΣΣΣΣ", "aΣΣΣ", "ΣaΣ'Σ.Σ", "Σ", "aΣ.", "aΣ.a", "aΣ..'Σ", "İΣ", "ßΣß", "ŉß", "", "ascii"]


@pytest.mark.parametrize(
    ("written", "around"),
    [
        ("upper(s)", "{0}"),
        ("lower(s)", "{0}"),
        # The small form of a capital sigma depends on what is beside it.
        ("lower(s)", "a{0}Σ aΣ{0} aΣ{0}a"),
    ],
)
def test_every_letter_has_the_case_that_it_has_in_spark(
    spark: SparkSession, written: str, around: str
) -> None:
    """A newer Unicode in either engine would count two spellings of a name as one on one path only."""
    runs = (LETTERS[start : start + RUN] for start in range(0, len(LETTERS), RUN))
    texts = [" ".join(around.format(letter) for letter in run) for run in runs] + WORDS
    rows = pa.table({"n": pa.array(range(len(texts))), "s": pa.array(texts)})
    wanted = compile_expression(written, SCHEMA)
    theirs = spark.createDataFrame(rows).selectExpr("n", f"{wanted.text} AS v").orderBy("n").toArrow()
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        ours = connection.sql(f"SELECT n, {wanted.duckdb} AS v FROM rows ORDER BY n").to_arrow_table()
    assert ours["v"].to_pylist() == theirs["v"].to_pylist()
