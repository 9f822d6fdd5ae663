"""Every form an expression may take gives the same value, or the same refusal, in Spark and in DuckDB."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.arrow_types import arrow_type
from seamline.model.expressions import Expression, compile_expression
from seamline.model.types.schema import Schema

SCHEMA = Schema.parse(
    "i INT, j INT, k INT NOT NULL, b BIGINT, c BIGINT, x DOUBLE, y DOUBLE, d DECIMAL(10,2), e DECIMAL(5,3),"
    " s STRING, t STRING, p BOOLEAN, q BOOLEAN, ts TIMESTAMP, u TIMESTAMP, dt DATE, raw BINARY,"
    " o STRUCT<a: INT, n: STRUCT<s: STRING, l: ARRAY<BIGINT>>>, l ARRAY<INT>, w ARRAY<STRING>,"
    " r ARRAY<STRUCT<k: STRING, v: DOUBLE>>, m MAP<STRING, STRING>, h MAP<STRING, ARRAY<INT>>"
)
INTS = [None, 0, 1, -1, 2, -7, 100, 2**31 - 1, -(2**31)]
BIGINTS = [None, 0, 1, -1, 3, -7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
DOUBLES = [
    None, 0.0, -0.0, 1.5, -1.5, 2.5, 0.49999999999999994, 1e20, -1e20, math.nan, math.inf, -math.inf,
    5e-324, 1.7976931348623157e308, 2147483647.9, -2147483648.9, 9.223372036854775807e18, 0.1, 60.0,
]  # fmt: skip
STRINGS = [
    None, "", "a", "A", "abc", "abcdef", "  a\t ", "é", "e\u0301", "😀a", "ß", "a_c", "a%c", "a\\c", "a\nb",
    "12", " 12 ", "+7", "-0", "1.7", "1e3", "99999999999", "1_000", "x\u00a0", "\uffff",
    "it's", "\t5\x1f", "NaN", " a ", "\u3000a", "Straße", "ŉﬃ", "İI", "ıi", "ΑΣ", "ΌΔΟΣ Σ'Α ΣΣ", "\u1f88", "a,b,,",
    ",a", "a, b;c", "a\n", "a\r\n", "a\r", "a\u2028", "\n", "a|b|", "k=v&k2=v 2", "2013-01-31", "AA-12 BB-7",
    "K\u212a", "ſK", "a{01}",
]  # fmt: skip
INSTANTS = [
    None,
    *(
        datetime.fromisoformat(text).replace(tzinfo=UTC)
        for text in [
            "0001-01-01 00:00:00", "1500-02-28 23:59:59.999999", "1582-10-10 12:00:00", "1900-01-01 10:30:00",
            "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2013-01-01 00:00:00", "2013-03-10 07:30:00",
            "2013-12-29 12:34:56.789012", "2020-02-29 23:00:00", "2024-12-30 00:00:00", "2024-01-31 12:00:00",
            "2023-10-31 02:00:00",
            "9999-12-31 23:59:59.999999",
        ]
    ),
]  # fmt: skip
VALUES: dict[str, list[object]] = {
    "INT": [*INTS],
    "BIGINT": [*BIGINTS],
    "DOUBLE": [*DOUBLES],
    "STRING": [*STRINGS],
    "BOOLEAN": [None, True, False],
    "TIMESTAMP": [*INSTANTS],
    "DATE": [None, *(moment.date() for moment in INSTANTS if moment), date(2013, 1, 31)],
    "BINARY": [None, b"", b"\x1f", b"\xff\x00"],
    "DECIMAL(10,2)": [None, Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99"), Decimal("2.50")],
    "DECIMAL(5,3)": [None, Decimal("0.000"), Decimal("1.500"), Decimal("-99.999"), Decimal("0.001")],
}
NESTED: dict[str, list[object]] = {
    "o": [
        None, {"a": None, "n": None}, {"a": 2**31 - 1, "n": {"s": "x", "l": [1, None]}},
        {"a": 3, "n": {"s": None, "l": []}},
    ],
    "l": [None, [], [1], [None], [1, 2, 3], [None, 7], [-7, 2**31 - 1, None]],
    "w": [None, [], ["a"], ["é", None], ["b", "a"], [""]],
    "r": [None, [], [{"k": "a", "v": 1.5}], [None], [{"k": None, "v": None}, {"k": "b", "v": math.nan}]],
    "m": [None, [], [("a", "x")], [("a", None), ("é", "y")], [("", "z"), ("b", "")]],
    "h": [None, [], [("a", [1, 2])], [("a", [])], [("a", None), ("b", [5])]],
}  # fmt: skip
ROWS = 200
ROW_ERRORS = (
    "ARITHMETIC_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "REMAINDER_BY_ZERO",
    "CAST_OVERFLOW",
    "CAST_INVALID_INPUT",
    "INVALID_ARRAY_INDEX",
    # A day beyond the years 1 to 9999 Spark computes and cannot hand over.
    "date value out of range",
    "ordinal must be >= 1",
)

EXPRESSIONS = """
i + j | i - j | i * j | i + b | b * c | b - c | i + 1 | CAST(i AS BIGINT) + 1 | k * 2 - 1
i * j + k * 2 | -i | - b | abs(i) | abs(b) | abs(x)
-x | x + y | x - y | x * y | x / y | i / j | b / i | x / i | (i + j) / k | i / (j - k) | i % j | b % c
x % y | i div j | b div c | b div -1 | mod(i, 7)
d + e | d - e | d * e | d + 1 | d * 1.5 | i + 1.5 | d > e | d = i | d < 1.5 | e <= b | d > x | x > 1.5
x = 0.1 | i > 1.5 | -d | abs(e) | d <> 2.5
d * d | d * d * d | d * i | -3 * d * d | e * e * e * e | try_multiply(d, d)
x + d | i * 2.5D | i * 1e2 | x > 1e308 | 1.5 + 1 | 2 * 60 * 60 | i = -2147483648
b = -9223372036854775808 | -5L + i | -1.5D * x | 1.5BD + i
try_add(i, j) | try_subtract(b, c) | try_multiply(b, c) | try_divide(x, y) | try_divide(i, j)
try_add(d, e)
!p AND q | !i = j | i = j IS NULL | NOT p OR q | i + j * 2 - 3 | i - j - k | -i % 3 | i = j | i <> j
i != j | i == j | i < j | i <= b | b > x | x = y | x < y | x >= y | x <=> y | i <=> NULL
i IS DISTINCT FROM j | i IS NOT DISTINCT FROM j
s = t | s < t | s >= 'é' | s = 'it\\'s' | s = "it's" | s <> 'a\\nb' | p = q | p < q | p > FALSE
raw = raw | raw IS NULL | NOT p | NOT i = j | NOT i IS NULL
p AND q | p OR q | NOT (p AND q) OR i > 1 | p AND i > 1 AND s = 'a' | i + j > 5 AND p | (x / y > 1) OR q
p IS TRUE | p IS NOT TRUE | p IS FALSE | (i / j) IS NULL | NULL OR p
i IN (1, 2, NULL) | i NOT IN (1, -1) | i NOT IN (1, NULL) | s IN ('a', 'é', '') | x IN (0, 1.5D)
b IN (1, 3) | i IN (1.0, 2.5) | x IN (0.1, 60)
ts IN (TIMESTAMP'1970-01-01 00:00:00', u) | i + j IN (3, 4) | i BETWEEN -7 AND 2 | i NOT BETWEEN j AND 5
x BETWEEN y AND 2.5 | ts BETWEEN '1970-01-01' AND u | s BETWEEN 'a' AND 'b'
s LIKE 'a%' | s LIKE '_a' | s LIKE 'a_c' | s LIKE 'a\\_c' | s LIKE 'a\\%c' | s LIKE 'a\\\\\\\\c'
s LIKE 'a#_c' ESCAPE '#' | s NOT LIKE '%a%' | s LIKE '' | s LIKE 'a%b' | s LIKE '%😀_' | s LIKE '_'
IF(i > 1, i, b) | IF(p, 1, 2.5) | CASE WHEN p THEN i WHEN q THEN b END | CASE WHEN p THEN x ELSE i END
CASE i WHEN 1 THEN 'one' WHEN j THEN 'j' ELSE s END | CASE WHEN x / y > 1 THEN 1 ELSE 0 END
CASE WHEN p THEN NULL ELSE d END
CASE WHEN p THEN i ELSE d END | coalesce(i, j, 0) | coalesce(i, x) | coalesce(i, 2.5)
coalesce(s, 'none') | nvl(i, 7) | ifnull(x, 0) | nullif(i, j) | nullif(x, 0) | nullif(i, 1.0)
nullif(s, '') | coalesce(i + j, 0)
greatest(i, j, b) | least(x, y) | greatest(x, i) | isnull(i) | isnotnull(s) | isnan(x) | length(s)
char_length(s) | trim(s) | ltrim(s) | rtrim(s) | trim(BOTH 'a ' FROM s) | trim(LEADING 'a' FROM s)
trim(TRAILING FROM s)
s || t | concat(s, '-', t) | concat(s, CAST(i AS STRING)) | substring(s, 1, 2) | substring(s, 0, 2)
substring(s, 2) | substr(s, -2) | substring(s, -5, 4) | substring(s, -2, 1) | substring(s, 3, 0)
substring(s, 2, -1) | substring(s, -3, 2147483647) | substring(s, 2147483647, 2147483647)
substring(s, -2147483648, 5)
startswith(s, t) | endswith(s, 'c') | contains(s, t) | contains(s, '') | floor(x) | ceil(x) | ceiling(y)
floor(i) | floor(d) | ceil(e) | round(x) | round(x, 0) | round(i)
CAST(i AS BIGINT) | CAST(i AS DOUBLE) | CAST(b AS DOUBLE) | CAST(b AS INT) | CAST(x AS INT)
CAST(x AS BIGINT) | CAST(i AS STRING) | CAST(b AS STRING) | CAST(p AS STRING) | CAST(p AS INT)
CAST(i AS BOOLEAN) | CAST(b AS BOOLEAN) | CAST(s AS INT) | CAST(s AS BIGINT)
TRY_CAST(s AS INT) | TRY_CAST(s AS BIGINT) | TRY_CAST(x AS INT) | TRY_CAST(b AS INT)
CAST(i AS DECIMAL(12,2)) | CAST(d AS DECIMAL(20,4)) | CAST(d AS DOUBLE) | CAST(e AS DOUBLE)
CAST(NULL AS STRING) | CAST(1.5 AS DOUBLE) | CAST(ts AS DATE) | CAST(dt AS TIMESTAMP) | s::INT
year(ts) | quarter(ts) | month(ts) | day(ts) | dayofmonth(ts) | dayofyear(ts) | weekofyear(ts)
dayofweek(ts) | weekday(ts) | hour(ts) | minute(ts) | second(ts) | year(dt) | dayofweek(dt)
weekofyear(dt)
date_trunc('year', ts) | date_trunc('quarter', ts) | date_trunc('month', ts) | date_trunc('WEEK', ts)
date_trunc('day', ts) | date_trunc('hour', ts) | date_trunc('minute', ts) | date_trunc('second', ts)
date_trunc('day', dt) | to_date(ts) | date(ts)
ts > '2013-01-01' | ts = '1970-01-01T00:00:00Z' | ts < '2013-01-01 01:00:00+02:00'
ts >= TIMESTAMP'1900-01-01 10:30:00' | ts < u | ts <=> u | dt = '2013-01-31' | dt > DATE'1969-12-31'
dt < ts | dt = to_date(ts) | hour(ts) IN (10, 23) AND i > 1
o.a | O.A + 1 | o.n.s | o.n.s = 'x' | o.n.l[0] | get(o.n.l, 1) | size(o.n.l) | o IS NULL | o.n IS NOT NULL
l[0] | l[2] | l[0] + 1 > 2 | get(l, 0) | get(l, 5) | element_at(l, 1) | try_element_at(l, 2) | size(l)
cardinality(w) | size(m) | w[0] = 'a' | get(w, 1) || 'x' | l IS NULL | m IS NOT NULL | coalesce(get(l, 0), i)
array_contains(l, 1) | array_contains(l, i) | array_contains(w, 'a') | array_contains(w, s)
array_contains(o.n.l, b) | NOT array_contains(l, 2)
r[0].k | get(r, 0).v | get(r, 1).k = 'b' | try_element_at(r, 1).v > 1.0D
m['a'] | m['zz'] IS NULL | m[''] | element_at(m, 'é') | try_element_at(m, 'a') | h['a'][0] | get(h['b'], 0)
size(h['a']) | array_contains(h['a'], 2) | CASE WHEN size(l) > 1 THEN get(l, 1) ELSE i END
upper(s) | lower(s) | ucase(s) | lcase(t) | upper('straße') | lower(s) = 'aσ' | upper(trim(s))
lower(upper(s)) | s RLIKE '[a-c]+' | s NOT RLIKE 'a' | regexp_like(s, '^a') | regexp(s, 'a$')
rlike(s, '^a.?$') | s RLIKE r'\\s' | s RLIKE r'^\\d{1,3}$' | s RLIKE 'a\\\\s$' | s RLIKE '(?i)^(straSSe|AB?C)'
s RLIKE '[^a]$' | s RLIKE '(?:b|c$)' | s RLIKE r'\\w=\\w' | s RLIKE '\\u00e9|\\\\u00df' | s RLIKE '(?s)^a.b$'
s RLIKE '^$' | s RLIKE r'\\x{1F600}.\\z' | s RLIKE '(?i)k$' | s RLIKE '^[A-Z]{2}-[0-9]+' | s RLIKE '[-+]?\\\\d'
s RLIKE r'^\\p{Punct}' | s RLIKE '[^\\\\w\\\\s,]' | regexp_extract(s, '(a)(b)?')
s RLIKE '(?i)s|k' | s RLIKE '^[Kk]|^[Ss]|^x' | regexp_extract(s, '(?i)(as|ak|s|k)')
regexp_replace(s, '(?i)(?:s|k)+', '') | regexp_extract(s, '(([a-c]),)+') | regexp_extract(s, '(?:(a)b)?c')
regexp_extract(s, '(a)|(b)', 2) | regexp_extract(s, '[0-9]+', 0) | regexp_extract(s, '(\\\\d+)-(\\\\d+)', 2)
regexp_extract(s, '^(.*?)[,;]') | regexp_extract(s, '^(.*)$') | regexp_extract(s, 'k2=([^&]*)')
regexp_extract(s, '(?:a|(b))$', 1) | regexp_extract(s, '(\\\\s)$') = '\\n'
regexp_replace(s, '[aeiou]', '<$0>') | regexp_replace(s, '(a)(b)?', '$2$1')
regexp_replace(s, '\\\\s+\\\\z', '') | regexp_replace(s, 'a', '\\\\$1\\\\\\\\') | regexp_replace(s, '^a', '')
regexp_replace(s, '(.)', '$12') | regexp_replace(s, 'a', '') | split(s, ',')[0] | get(split(s, ','), 1)
split(s, ',')[1] | size(split(s, ',')) | get(split(s, ','), 3) | size(split(s, 'a')) | split(s, '[,;] ?')
get(split(s, ',', 2), 1) | size(split(s, ',', 0)) | split(s, ',', 1)[0] | split(s, r'\\|', 3)
array_contains(split(s, ','), 'b') | get(split(s, '\\\\s+'), 1) | element_at(split(s, '='), 1)
split(s, '😀') IS NULL | concat_ws(',', s, t) | concat_ws(t, s, 'x', s) | concat_ws('-', w)
concat_ws('', s, w, t) | concat_ws(', ', split(s, ',')) | ts + INTERVAL 5 MINUTES | ts - INTERVAL '1' DAY
INTERVAL 1 HOUR 30 MINUTES + ts | ts - INTERVAL 1 HOUR 30 SECONDS | ts + INTERVAL 1 MONTH
ts - INTERVAL '13' MONTHS | ts + INTERVAL 1 YEAR 2 MONTHS | ts + INTERVAL 1.5 SECONDS | ts + INTERVAL -3 WEEKS
ts - INTERVAL '-0.000001' SECOND | ts + INTERVAL 5 MILLISECONDS | ts - INTERVAL 10000 YEARS
ts + INTERVAL 1 HOUR - INTERVAL 2 MINUTES | ts + (INTERVAL 1 DAY - INTERVAL 1 MICROSECOND)
ts > u - INTERVAL 7 DAYS | ts BETWEEN u - INTERVAL 5 MINUTES AND u + INTERVAL 1 DAY | dt + INTERVAL 5 DAYS
dt - INTERVAL 1 WEEK | dt + INTERVAL 1 MONTH | dt + INTERVAL 24 HOURS | dt - INTERVAL 1 DAY 1 HOUR
dt + -INTERVAL 2 DAYS | dt - INTERVAL 1 YEAR | year(ts + INTERVAL 1 DAY) | dt + INTERVAL 0 SECONDS
ts + INTERVAL 3652500 DAYS | CASE WHEN p THEN ts + INTERVAL 1 DAY ELSE u END | date_add(dt, 5)
date_sub(dt, 31) | dateadd(dt, -1) | date_add(ts, 1) | date_add(dt, i) | date_sub(dt, i % 400) | dt + 7 | dt - 7
7 + dt | dt + i % 7 | dt - k | (i / j > 1 AND p) OR dt + 1 > dt | date_add(dt, i + 1) | i + dt
ts + INTERVAL '5 minutes' | dt + INTERVAL '5 days' | dt + INTERVAL '-5' DAY | i + 1 + dt | datediff(dt, ts)
datediff(ts, u) | date_diff(dt, DATE'2020-02-29') | datediff(dt, dt + 30) | add_months(dt, 1)
add_months(ts, -13) | add_months(dt, i % 100) | last_day(dt) | last_day(ts) | dt > date_sub(to_date(ts), 7)
timestampdiff(MINUTE, ts, u) | datediff(HOUR, u, ts) | date_diff(DAY, ts, dt)
timestampdiff(SECOND, u, ts) > 60 | timestampdiff(WEEK, ts, u) | timestampdiff(MICROSECOND, ts, u)
timestampdiff(MILLISECOND, ts, u) | timestampadd(MINUTE, i, ts) | dateadd(DAY, 1, dt) | date_add(HOUR, -5, ts)
timestampadd(SECOND, k, ts) | timestampadd(WEEK, i % 9, ts) | timestampadd(microsecond, b % 1000, ts)
greatest(d, e) | least(d, x) | greatest(i, e) | least(b, d, i) | greatest(s, t) | least(s, t, 'b')
greatest(ts, u) | least(dt, ts) | greatest(p, q) | greatest(x, y, NULL) | least(i, NULL, j)
greatest(dt, DATE'2013-01-01') | greatest(b, x) | least(x, 1.5) | greatest(i, 1.5) | least(NULL, s)
hash(i) | hash(b) | hash(s) | hash(d) | hash(x) | hash(p) | hash(ts) | hash(dt) | hash(raw) | hash(d * d * d)
hash(d * d) | hash(i, b, s, d, x, p, ts, dt, raw, e * e * e * e) | hash(s, t, i) % 10 = 0 | hash(k, 1, 'a', 2L)
hash(i / j, s) > 0 | hash(upper(s)) | hash(get(w, 0), o.n.s, o.a) | hash(CAST(d AS DECIMAL(20,4)), 1.5)
CASE WHEN p THEN hash(s) END | hash(hash(i), s) | hash(i = j, s IS NULL) | 7 div (hash(l[0]) % 3)
hash(TIMESTAMP'2013-01-31 10:15:00', DATE'1500-02-28', TRUE, 1e3) | array_contains(l, hash(i)) | hash(m['a'])
"""
TEXTS = [text.strip() for line in EXPRESSIONS.strip().splitlines() for text in line.split(" | ")]
CHUNK = 60


def rows() -> pa.Table:
    """Make rows that meet every value of each column, and pairs of them at random."""
    chosen = random.Random(2013)
    arrays = {}
    for field in SCHEMA.fields:
        offered = NESTED[field.name] if field.type.nested else VALUES[field.type.spark]
        values = [value for value in offered if field.nullable or value is not None]
        picked = [*values, *chosen.choices(values, k=ROWS - len(values))]
        chosen.shuffle(picked)
        arrays[field.name] = pa.array(picked, arrow_type(field.type.spark))
    return pa.table({"_row": pa.array(range(ROWS), pa.int32()), **arrays})


def guard_of(expression: Expression) -> str:
    """Return the condition under which the record is refused."""
    return " OR ".join(f"coalesce({guard.condition_duckdb}, FALSE)" for guard in expression.guards) or "FALSE"


def compiled() -> list[Expression]:
    """Compile every text."""
    return [compile_expression(text, SCHEMA) for text in TEXTS]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """The rows."""
    return rows()


@pytest.fixture(scope="module")
def by_duckdb(table: pa.Table) -> Iterator[pa.Table]:
    """Every value and every guard, as DuckDB gives them in a session of another zone."""
    with open_duckdb() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.register("records", table)
        wanted = [
            f"{expression.duckdb} AS v{n}, ({guard_of(expression)}) AS g{n}"
            for n, expression in enumerate(compiled())
        ]
        yield connection.sql(f"SELECT _row, {', '.join(wanted)} FROM records ORDER BY _row").to_arrow_table()


def same(left: object, right: object) -> bool:
    """Whether two values are one: NaN is NaN, and an instant is an instant in any zone."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and left == right


def values(column: pa.ChunkedArray) -> list[object]:
    """Return plain values; instants as microseconds, days as numbers: Python has no year 10000."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


@pytest.mark.parametrize("written", ["text", "spark"])
@pytest.mark.parametrize("start", range(0, len(TEXTS), CHUNK))
def test_each_value_is_the_same(
    spark: SparkSession, table: pa.Table, by_duckdb: pa.Table, start: int, written: str
) -> None:
    """
    The kernel's DuckDB decides what is counted; Spark's rules are what the author was promised.

    Rows with a guard are kept from Spark: that it raises for none of the others shows the guards complete.
    """
    chunk = list(enumerate(compiled()))[start : start + CHUNK]
    guards = pa.table({f"g{n}": by_duckdb[f"g{n}"] for n, _ in chunk})
    together = table
    for name in guards.column_names:
        together = together.append_column(name, guards[name])
    frame = spark.createDataFrame(together)
    wanted = [
        f"CASE WHEN NOT g{n} THEN {getattr(expression, written)} END AS v{n}" for n, expression in chunk
    ]
    answers = frame.selectExpr("_row", *wanted).orderBy("_row").toArrow()
    types = dict(frame.selectExpr(*wanted).dtypes)
    wrong = []
    for n, expression in chunk:
        if types[f"v{n}"].upper() != expression.type.spark:
            wrong.append(f"{expression.text}: {expression.type} is {types[f'v{n}']} in Spark")
        ours, theirs = values(by_duckdb[f"v{n}"]), values(answers[f"v{n}"])
        refused = by_duckdb[f"g{n}"].to_pylist()
        for row, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
            if not refused[row] and not same(mine, yours):
                record = {name: table[name][row].as_py() for name in expression.columns}
                wrong.append(f"{expression.text} of {record}: DuckDB {mine!r}, Spark {yours!r}")
                break
    assert not wrong, "\n".join(wrong)


def test_a_guarded_row_makes_spark_raise(spark: SparkSession, table: pa.Table, by_duckdb: pa.Table) -> None:
    """A guard that is true too often would put good records into quarantine."""
    silent = []
    for n, expression in enumerate(compiled()):
        refused = [row for row, guarded in enumerate(by_duckdb[f"g{n}"].to_pylist()) if guarded]
        assert bool(refused) == bool(expression.guards), f"{expression.text} has no row that tries its guards"
        for row in refused[:1]:
            one = spark.createDataFrame(table.take([row])).selectExpr(f"{expression.text} AS v")
            try:
                one.collect()
            except Exception as error:
                if any(condition in str(error) for condition in ROW_ERRORS):
                    continue
                raise
            silent.append(f"{expression.text} of row {row}: {table.slice(row, 1).to_pylist()[0]}")
    assert not silent, "\n".join(silent)


def test_no_row_makes_duckdb_raise(table: pa.Table) -> None:
    """One record must not stop the stream, whatever the values beside it."""
    with open_duckdb() as connection:
        connection.register("records", table)
        for expression in compiled():
            text = f"SELECT {expression.duckdb}, {guard_of(expression)} FROM records"
            assert connection.sql(text).to_arrow_table().num_rows == ROWS
            kinds = connection.execute(f"SELECT typeof({expression.duckdb}) FROM records LIMIT 1").fetchall()
            spelled = kinds[0][0].replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
            assert spelled == expression.type.duckdb, expression.text
