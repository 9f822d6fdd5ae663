"""hash(...) is Spark's to the bit, for texts of any length and numbers of any width."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seamline import Batch, KafkaSource, Pipeline, Rule, Tumbling, View, count, count_true, max, sum
from seamline.lake.audit.recounted import recount_states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.spark_hashes import FEW, STRETCH
from seamline.lake.read.named_sides import side_rows
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.expressions import compile_expression
from seamline.model.types.schema import Schema
from seamline.serve.explain import explain_number

LENGTHS = [*range(40), 63, 64, 65, 1000, 1001, 1002, 1003, 4 * STRETCH + 7]
POWERS = [
    sign * (2**power + beside) for sign in (1, -1) for power in range(0, 126, 5) for beside in (-1, 0, 1)
]
BYTES = [
    sign * 2 ** (8 * width - 1) + beside for sign in (1, -1) for width in range(1, 16) for beside in (-1, 0)
]

SAMPLED = Pipeline(
    name="sampled",
    source=KafkaSource(
        topic="visits",
        schema="user STRING NOT NULL, pages INT, tags ARRAY<STRING>, at TIMESTAMP",
        event_time="at",
    ),
    select={"bucket": "hash(user) % 3"},
    rules=[Rule("no zero", "hash(user, 'refused') % 5 <> 0")],
    side={"control": "hash('control', user) % 4 = 0"},
    where="hash(user) % 2 = 0",
    views=[
        View(
            "buckets",
            keys=["bucket"],
            window=Tumbling("1 day"),
            where="hash(pages) <> 0",
            measures={
                "n": count(),
                "most": max("hash(user, pages)"),
                "even": count_true("hash(pages) % 2 = 0"),
            },
        ),
        View(
            "tags",
            keys=["tag"],
            window=Tumbling("1 day"),
            explode={"tag": "tags"},
            where="hash(tag) % 7 <> 0",
            measures={"n": count(), "hashed": sum("10 div (hash(tag, user) % 3)")},
        ),
    ],
    batch=Batch("1 day", "2024-01-01"),
)


def texts_of(letters: str, copies: int) -> list[str | None]:
    """Make texts of every length that ends another way, each ``copies`` times, among NULLs."""
    chosen = random.Random(len(letters) + copies)
    return [
        text
        for length in LENGTHS
        for _ in range(copies)
        for text in ("".join(chosen.choices(letters, k=length)), None)
    ]


@pytest.mark.parametrize("copies", [1, FEW + 1])
@pytest.mark.parametrize("letters", ["abcxyz01", "aé€😀\u007f\u0080"])
def test_texts_of_every_length(spark: SparkSession, letters: str, copies: int) -> None:
    """What of a text fills no word is hashed in Spark's own way, and long texts are hashed one by one."""
    few = texts_of(letters, copies)[: None if copies == 1 else 80 * copies]
    same_hashes(spark, "s STRING", "hash(s)", pa.array(few, pa.string()))
    same_hashes(spark, "s BINARY", "hash(s, 7)", pa.array(few, pa.string()).cast(pa.binary()))


@pytest.mark.parametrize(
    ("width", "scale"), [(38, 0), (38, 38), (38, 12), (19, 0), (19, 19), (18, 18), (18, 0), (9, 3)]
)
def test_decimals_of_every_width(spark: SparkSession, width: int, scale: int) -> None:
    """Spark hashes a DECIMAL of 18 digits as a number, of 19 as the bytes that Java gives for it."""
    whole = [0, 10**width - 1, 1 - 10**width, *(each for each in POWERS + BYTES if abs(each) < 10**width)]
    # By its text: a Decimal that is computed has 28 digits at most.
    values = [None, *(Decimal(f"{each}e-{scale}") for each in whole)]
    type_ = pa.decimal128(width, scale)
    same_hashes(spark, f"s DECIMAL({width},{scale})", "hash(s)", pa.array(values, type_))


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_columns_without_a_value(spark: SparkSession, rows: int) -> None:
    """A NULL leaves the hash as it is: that of nothing is the seed."""
    for declared, type_ in (("s STRING", pa.string()), ("s DECIMAL(30,2)", pa.decimal128(30, 2))):
        found = same_hashes(spark, declared, "hash(s, s)", pa.nulls(rows, type_))
        assert found == [42] * rows


def same_hashes(spark: SparkSession, declared: str, text: str, values: pa.Array) -> list[int]:
    """Require that both engines hash the values alike; return the hashes."""
    rows = pa.table({"n": pa.array(range(len(values)), pa.int32()), "s": values})
    wanted = compile_expression(text, Schema.parse(declared))
    theirs = spark.createDataFrame(rows).selectExpr("n", f"{text} AS v").orderBy("n").toArrow()
    with open_duckdb() as connection:
        connection.register("rows", rows)
        ours = connection.sql(f"SELECT n, {wanted.duckdb} AS v FROM rows ORDER BY n").to_arrow_table()
    assert ours["v"].to_pylist() == theirs["v"].to_pylist()
    found: list[int] = ours["v"].to_pylist()
    return found


@pytest.mark.parametrize("engine", ["plain", "spark"])
def test_hashes_in_every_step(spark: SparkSession, engine: str, scenario) -> None:
    """A sample is the same users in both layers, in an audit, and in a number that is taken apart."""
    story = scenario(SAMPLED, spark=spark if engine == "spark" else None, now="2024-01-03")
    users = [f"user {at}" for at in range(60)]
    for at, user in enumerate(users):
        tags = [["a", "b", None], []][at % 2]
        story.send({"user": user, "pages": at, "tags": tags, "at": "2024-01-01T10:00Z"})
    story.epoch()
    story.send({"user": "end", "at": "2024-01-02T10:00Z"})
    story.epoch()

    hashed = [
        "user",
        "hash(user)",
        "hash(user, 'refused') % 5",
        "hash('control', user) % 4",
        "hash(user) % 3",
    ]
    hashed += [f"hash('{tag}', user) % 3" for tag in "ab"]
    told = [
        tuple(row)
        for row in spark.createDataFrame([(each,) for each in users], "user STRING")
        .selectExpr(*hashed)
        .collect()
    ]
    ruled = {user for user, _, refused, *_ in told if refused == 0}
    aside = {user for user, _, _, control, *_ in told if control == 0} - ruled
    taken = [row for row in told if row[0] not in ruled | aside and row[1] % 2 == 0]
    failed = {row[0] for row in taken if 0 in row[5:] and row[0] in users[::2]}
    expected = Counter(row[4] for row in taken if row[0] not in failed)
    found = story.answer("buckets", window_start=datetime(2024, 1, 1, tzinfo=UTC))
    assert {row["bucket"]: row["n"] for row in found} == expected and len(expected) > 1
    reasons = Counter(each.reason for each in story.quarantine())
    assert reasons == {"rule no zero": len(ruled), "error in tags.hashed": len(failed)} and failed

    before = [story.answer(view) for view in ("buckets", "tags")]
    assert story.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    after = [story.answer(view) for view in ("buckets", "tags")]
    for speed, batch in zip(before, after, strict=True):
        assert [measured(row) for row in speed] == [measured(row) for row in batch]
        assert any(row["batch_part"] for row in batch)
    if engine == "plain":
        return
    pipeline, layout = story.pipeline, story.engine.layout
    assert set(side_rows(pipeline, layout, "control")["user"].to_pylist()) - {"end"} == aside
    log = CommittedLog.pin(pipeline, layout)
    for view, key in zip(pipeline.views, ({"bucket": str(found[0]["bucket"])}, {"tag": "a"}), strict=True):
        again = explain_number(pipeline, view, layout, key, (datetime(2024, 1, 1, tzinfo=UTC), None))
        assert again.proven, again.proofs
        assert recount_states(pipeline, view, layout, log).findings == ()


def measured(row: dict[str, object]) -> list[object]:
    """Return what is measured of a row, without what says from where it is."""
    return [row.get(name) for name in ("bucket", "tag", "window_start", "n", "most", "even", "hashed")]
