"""Functions that are not taken, and what to write instead."""

from __future__ import annotations

AGGREGATE = "an expression is of one record: aggregate with a measure, such as count() or sum(...)."
CLOCK = "its value changes between two runs; use a column of the record."
CHANCE = "its value changes between two runs; a record must mean the same each time it is read."
CASE_HINT = "engines map letters beyond ASCII differently; compare lower(x) or upper(x), or use transform=."
PATTERN = "use regexp_like, regexp_extract, regexp_replace or split; or transform=."
HASH = "use hash, transform=, or the column itself as a key."
DIGEST = "use transform=, or the column itself as a key."
POWERS = "engines' last digits differ; use transform=."
METADATA = 'a view sees columns only: name it in the pipeline with select={"name": "..."}, and use that name.'
REFUSED = {
    **dict.fromkeys(
        ("count", "sum", "avg", "mean", "min", "max", "first", "last", "collect_list"), AGGREGATE
    ),
    **dict.fromkeys(("now", "current_timestamp", "current_date", "curdate", "unix_timestamp"), CLOCK),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "monotonically_increasing_id", "shuffle"), CHANCE),
    **dict.fromkeys(("initcap", "ilike"), CASE_HINT),
    **dict.fromkeys(
        ("regexp_count", "regexp_extract_all", "regexp_instr", "regexp_substr", "split_part"), PATTERN
    ),
    **dict.fromkeys(("xxhash64", "crc32"), HASH),
    **dict.fromkeys(("md5", "sha", "sha1", "sha2"), DIGEST),
    **dict.fromkeys(("months_between", "next_day"), "engines differ; use datediff, add_months or last_day."),
    **dict.fromkeys(
        ("make_interval", "make_dt_interval", "make_ym_interval"), "write an INTERVAL, or timestampadd."
    ),
    **dict.fromkeys(("sqrt", "pow", "power", "exp", "ln", "log", "log10", "sin", "cos", "tan"), POWERS),
    **dict.fromkeys(
        ("_key", "_headers", "header", "_topic", "_partition", "_offset", "_kafka_timestamp"), METADATA
    ),
    "date_format": "engines' formats differ; use year, month, day, hour or date_trunc.",
    "to_timestamp": "declare the column TIMESTAMP in the schema: text is read there.",
    "int": "write CAST(x AS INT).",
    "bigint": "write CAST(x AS BIGINT).",
    "double": "write CAST(x AS DOUBLE).",
    "string": "write CAST(x AS STRING).",
}
