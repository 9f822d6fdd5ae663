"""What a SQL file may get wrong, and where its author is sent: line, column, clause, and the way out."""

from __future__ import annotations

import re

import pytest
from tests.unit.model.sql.test_features import BY_SHOP, HEAD, ORDERS, REFUNDS, SCHEMA

from seamline.model.errors import DefinitionError
from seamline.model.sql.pipeline_file import read_pipeline_text

BEGIN = f"{HEAD}\n{ORDERS}\n{REFUNDS}\n"
VIEW = "CREATE VIEW v AS SELECT shop, count(*) AS n FROM orders"
DERIVED = "CREATE DERIVED d AS SELECT * FROM orders"
OPTIONS = "WITH (connector = 'kafka', topic = 't')"

WRONG: dict[str, tuple[str, str, str, str]] = {
    # What is behind the first three lines; where the fault is marked by »; clause, message, hint.
    "another statement": ("»SELECT 1;", "", "No statement begins with 'SELECT'", "CREATE PIPELINE, SOURCE"),
    "a change of data": ("»INSERT INTO x SELECT 1;", "", "No statement begins with 'INSERT'", "CREATE"),
    "a table": ("CREATE »TABLE x (a INT);", "", "There is no CREATE TABLE", "CREATE SOURCE for what is read"),
    "a replaced view": (
        "CREATE »OR REPLACE VIEW v AS SELECT 1;",
        "",
        "There is no CREATE OR",
        "OR REPLACE out",
    ),
    "a view that may be there": (
        "CREATE VIEW »IF NOT EXISTS v AS SELECT 1;",
        "",
        "no IF NOT EXISTS",
        "leave it out",
    ),
    "a materialized view": (
        "CREATE »MATERIALIZED VIEW v AS SELECT 1;",
        "",
        "no CREATE MATERIALIZED",
        "CREATE VIEW",
    ),
    "no semicolon": (f"{BY_SHOP[:-1]}»", "VIEW by_shop", "The statement does not end", "semicolon"),
    "two statements without one": (
        f"{BY_SHOP[:-1]} »CREATE VIEW w AS SELECT count(*) AS n FROM orders;",
        "VIEW by_shop",
        "'CREATE' does not belong here",
        "semicolon",
    ),
    "two pipelines": (f"»{HEAD.replace('shop', 'other')}", "PIPELINE other", "two pipelines", "own file"),
    "two sources of a name": (
        f"CREATE SOURCE »orders (a INT, WATERMARK FOR a) {OPTIONS};",
        "SOURCE orders",
        "'orders' is declared twice (on line 2 before)",
        "rename",
    ),
    "two views of a name": (
        f"{BY_SHOP} {BY_SHOP.replace('by_shop', '»by_shop')}",
        "VIEW by_shop",
        "'by_shop' is declared twice (on line 4 before)",
        "rename",
    ),
    "a source and derived rows of a name": (
        DERIVED.replace(" d ", " »orders ") + ";",
        "DERIVED orders",
        "'orders' is declared twice",
        "rename",
    ),
    "a view before its source": (
        (
            "CREATE VIEW v AS SELECT count(*) AS n FROM »later;\n"
            f"CREATE SOURCE later (a INT, WATERMARK FOR a) {OPTIONS};"
        ),
        "VIEW v, FROM",
        "'later' is declared after this, on line 5",
        "move",
    ),
    "a view of nothing": (
        "CREATE VIEW v AS SELECT count(*) AS n FROM »nowhere;",
        "VIEW v, FROM",
        "There is no source 'nowhere'",
        "there are orders, refunds",
    ),
    "a sink before its view": (
        "CREATE SINK s FROM »by_shop WITH (connector = 'kafka', topic = 't');",
        "SINK s",
        "There is no view 'by_shop' before this",
        "there are none",
    ),
    "a name that is a text": ("CREATE VIEW »'v' AS SELECT 1;", "", "\"'v'\" is a text", "in backticks: `v`"),
    "a name in double quotes": (
        'CREATE VIEW v AS SELECT count(*) AS n FROM »"orders";',
        "VIEW v, FROM",
        "is a text",
        "`orders`",
    ),
    "a reserved word": (
        "CREATE VIEW »select AS SELECT 1;",
        "",
        "'select' is a reserved word",
        "quote it: `select`",
    ),
    "letters beyond ASCII": (
        "CREATE VIEW »größe AS SELECT 1;",
        "",
        "'größe' has letters that are not in names",
        "ASCII",
    ),
    "letters beyond ASCII in a column": (
        f"CREATE SOURCE s (»größe INT, WATERMARK FOR at) {OPTIONS};",
        "SOURCE s",
        "'größe' has letters",
        "ASCII",
    ),
    "letters beyond ASCII in backticks": (
        f"CREATE SOURCE s (»`größe` INT, WATERMARK FOR at) {OPTIONS};",
        "SOURCE s, column größe",
        "is not a column name",
        "use letters",
    ),
    "a number for a name": (
        "CREATE VIEW »1 AS SELECT 1;",
        "",
        "'1' is not the name of a VIEW",
        "write a name",
    ),
    # Sources.
    "a comma behind the last column": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a»,) {OPTIONS};",
        "SOURCE s",
        "A comma has nothing behind it",
        "delete the comma",
    ),
    "two commas": (
        f"CREATE SOURCE s (a INT»,, WATERMARK FOR a) {OPTIONS};",
        "SOURCE s",
        "A comma has nothing",
        "delete",
    ),
    "a column without a type": (
        f"CREATE SOURCE s (a», WATERMARK FOR a) {OPTIONS};",
        "SOURCE s, column a",
        "Column 'a' has no type",
        "STRING",
    ),
    "a type that there is not": (
        f"CREATE SOURCE s (»a VARCHAR(10), WATERMARK FOR a) {OPTIONS};",
        "SOURCE s, column a",
        "unknown type 'VARCHAR(10)'",
        "STRING",
    ),
    "digits that are no ASCII": (
        f"CREATE SOURCE s (»a DECIMAL(²), at TIMESTAMP, WATERMARK FOR at) {OPTIONS};",
        "SOURCE s, column a",
        "unknown type 'DECIMAL(²)'",
        "STRING",
    ),
    "types inside of types inside of types": (
        f"CREATE SOURCE s (»a {'ARRAY<' * 3000}INT{'>' * 3000}, at TIMESTAMP, WATERMARK FOR at) {OPTIONS};",
        "SOURCE s, column a",
        "nests more than 50 types",
        "STRING",
    ),
    "a cube of many keys": (
        f"{VIEW} GROUP BY »CUBE ({', '.join(f'k{at}' for at in range(40))}), TUMBLE(at, INTERVAL '1 hour');",
        "VIEW v, GROUP BY",
        "CUBE of 40 keys",
        "GROUPING SETS",
    ),
    "a column twice": (
        f"CREATE SOURCE s (a INT, »a INT, WATERMARK FOR a) {OPTIONS};",
        "SOURCE s, column a",
        "Column 'a' is declared twice",
        "delete",
    ),
    "a default": (
        f"CREATE SOURCE s (a INT »DEFAULT 1, WATERMARK FOR a) {OPTIONS};",
        "SOURCE s, column a",
        "'DEFAULT' does not belong behind a column",
        "coalesce",
    ),
    "metadata": (
        f"CREATE SOURCE s (a INT »METADATA, WATERMARK FOR a) {OPTIONS};",
        "SOURCE s, column a",
        "'METADATA' does not belong",
        "_kafka_timestamp",
    ),
    "no event time": (
        f"»CREATE SOURCE s (a INT) {OPTIONS};",
        "SOURCE s",
        "has no event time",
        "WATERMARK FOR",
    ),
    "no columns": (
        f"»CREATE SOURCE s (WATERMARK FOR a) {OPTIONS};",
        "SOURCE s",
        "has no columns",
        "CREATE SOURCE name",
    ),
    "two watermarks": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a, »WATERMARK FOR a) {OPTIONS};",
        "SOURCE s, WATERMARK FOR",
        "declared twice",
        "one event time",
    ),
    "a watermark of another column": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a AS »b - INTERVAL '1 day') {OPTIONS};",
        "SOURCE s, WATERMARK FOR",
        "The watermark of a is of b",
        "same column",
    ),
    "a watermark without lateness": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a AS a») {OPTIONS};",
        "SOURCE s, WATERMARK FOR",
        "'-' is missing before ')'",
        "leave AS out",
    ),
    "a unit that there is not": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a AS a - INTERVAL '1' »MONTH) {OPTIONS};",
        "SOURCE s, WATERMARK FOR",
        "'MONTH' is not a unit of time",
        "Units are",
    ),
    "a length that is none": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a AS a - »INTERVAL 'soon') {OPTIONS};",
        "SOURCE s, WATERMARK FOR",
        "'soon' is not a duration",
        "10 minutes",
    ),
    "a rule without a name": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a, »CHECK (a > 0)) {OPTIONS};",
        "SOURCE s, CHECK",
        "The condition has no name",
        "CONSTRAINT name CHECK",
    ),
    "a rule twice": (
        (
            f"CREATE SOURCE s (a INT, WATERMARK FOR a, CONSTRAINT x CHECK (a > 0), CONSTRAINT »x CHECK (a > 1)) "
            f"{OPTIONS};"
        ),
        "SOURCE s, CONSTRAINT",
        "'x' is declared twice",
        "rename",
    ),
    "a rule without brackets": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a, CONSTRAINT x CHECK »a > 0) {OPTIONS};",
        "SOURCE s, CONSTRAINT",
        "'(' is missing",
        "brackets around",
    ),
    "a rule of nothing": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a, CONSTRAINT x CHECK (»)) {OPTIONS};",
        "SOURCE s, CONSTRAINT",
        "The condition is missing before ')'",
        "expression",
    ),
    "a bracket that is not closed": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a, CONSTRAINT x CHECK »(a > 0 {OPTIONS};",
        "SOURCE s, CONSTRAINT",
        "'(' is not closed",
        "close",
    ),
    "a key that is enforced": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a, PRIMARY KEY (a)») {OPTIONS};",
        "SOURCE s, PRIMARY KEY",
        "NOT ENFORCED is missing",
        "UNIQUE (column, ...)",
    ),
    "no connector": (
        "»CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (topic = 't');",
        "SOURCE s, WITH",
        "connector is missing",
        "connector = '...'",
    ),
    "another connector": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (»connector = 'kinesis');",
        "SOURCE s, WITH",
        "There is no connector 'kinesis'",
        "there are kafka, delta",
    ),
    "no topic": (
        "»CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka');",
        "SOURCE s, WITH",
        "topic is missing",
        "topic = '...'",
    ),
    "another setting": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka', »topics = 't');",
        "SOURCE s, WITH",
        "topics is not a setting here",
        "did you mean topic?",
    ),
    "a setting that is a clause": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka', topic = 't', »event_id = 'a');",
        "SOURCE s, WITH",
        "event_id is not a setting here",
        "UNIQUE (column, ...)",
    ),
    "a setting that is Python's": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'delta', table = '/t', »columns = 'a');",
        "SOURCE s, WITH",
        "columns is not a setting here",
        "written in Python",
    ),
    "a setting twice": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (topic = 't', »topic = 't');",
        "SOURCE s, WITH",
        "topic is set twice",
        "delete",
    ),
    "a setting without a value": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (topic = »);",
        "SOURCE s, WITH",
        "')' is not a value",
        "text in quotes",
    ),
    "a setting of another kind": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka', »topic = 5);",
        "SOURCE s, WITH",
        "5 is not a value of topic",
        "a text in quotes",
    ),
    "a number that is a text": (
        (
            "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka', topic = 't', "
            "»max_record_bytes = 'all');"
        ),
        "SOURCE s, WITH",
        "'all' is not a value of max_record_bytes",
        "a whole number",
    ),
    "a format that there is not": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka', topic = 't', »format = 'xml');",
        "SOURCE s, WITH",
        "There is no format 'xml'",
        "json",
    ),
    "a backslash that means nothing": (
        r"CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (connector = 'kafka', topic = »'\d');",
        "SOURCE s, WITH",
        r"\d means nothing in a text",
        "r'...'",
    ),
    "a doubled quote": (
        "CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (topic = 'it'»'s');",
        "SOURCE s, WITH",
        "A quote in a text is not doubled",
        r"\'",
    ),
    # Look-ups and derived rows.
    "a look-up of nothing": (
        "CREATE LOOKUP l (a) FOR »nowhere ON a = b WITH (table = 't');",
        "LOOKUP l",
        "There is no source 'nowhere'",
        "there are",
    ),
    "a look-up whose key is there twice": (
        "CREATE LOOKUP l (a) ON a = b AND »a = c;",
        "LOOKUP l, ON",
        "'a' is there twice",
        "delete",
    ),
    "derived rows that are chosen": (
        "CREATE DERIVED d AS SELECT »shop FROM orders;",
        "DERIVED d",
        "all columns",
        "SELECT *",
    ),
    "nothing derived": (f"{DERIVED}»;", "DERIVED d", "Nothing is derived", "Process, CoGroup, Ask"),
    "rows derived from derived ones": (
        "CREATE DERIVED c AS CHANGELOG OF orders; CREATE DERIVED d AS CHANGELOG OF »c;",
        "DERIVED d",
        "'c' names derived rows, and not a source",
        "from sources",
    ),
    "an outer join": (
        f"{DERIVED} »LEFT JOIN refunds ON orders.id = refunds.id;",
        "DERIVED d",
        "no FOR SYSTEM_TIME AS OF",
        "count(unmatched)",
    ),
    "a full join": (
        f"{DERIVED} »FULL JOIN refunds ON orders.id = refunds.id;",
        "DERIVED d",
        "There is no FULL JOIN",
        "unmatched",
    ),
    "a cross join": (f"{DERIVED} »CROSS JOIN refunds;", "DERIVED d", "There is no CROSS JOIN", "equal keys"),
    "a join as of a time that is none": (
        f"{DERIVED} LEFT JOIN refunds FOR SYSTEM_TIME AS OF »orders.id ON orders.id = refunds.id;",
        "DERIVED d",
        "orders.id is not the event time of orders",
        "orders.at",
    ),
    "a join without bounds": (
        f"{DERIVED} »JOIN refunds ON orders.id = refunds.id;",
        "DERIVED d, ON",
        "no bounds in time",
        "BETWEEN left.at",
    ),
    "a join with one bound": (
        f"{DERIVED} »JOIN refunds ON orders.id = refunds.id AND refunds.at >= orders.at;",
        "DERIVED d, ON",
        "no bounds in time",
        "BETWEEN left.at",
    ),
    "a join without keys": (
        f"{DERIVED} »JOIN refunds ON refunds.at BETWEEN orders.at AND orders.at + INTERVAL '1 day';",
        "DERIVED d, ON",
        "The join has no keys",
        "orders.key = refunds.key",
    ),
    "a join of what is not equal": (
        f"{DERIVED} JOIN refunds ON orders.id »<> refunds.id;",
        "DERIVED d, ON",
        "'<>' is no comparison of a join",
        "<=>",
    ),
    "a join of one side's columns": (
        f"{DERIVED} JOIN refunds ON »orders.id = orders.shop;",
        "DERIVED d, ON",
        "not of a left column with a right one",
        "orders.key",
    ),
    "a join by names alone": (
        f"{DERIVED} JOIN refunds ON »id = id;",
        "DERIVED d, ON",
        "not of a left column",
        "orders.key",
    ),
    "a bound of the left time": (
        f"{DERIVED} JOIN refunds ON orders.id = refunds.id AND »orders.at BETWEEN refunds.at AND refunds.at;",
        "DERIVED d, ON",
        "orders.at is not the event time of the right side",
        "right.at BETWEEN",
    ),
    "a bound on the wrong side": (
        f"{DERIVED} JOIN refunds ON orders.id = refunds.id AND refunds.at >= orders.at »+ INTERVAL '1 day';",
        "DERIVED d, ON",
        "A bound has +",
        "BETWEEN",
    ),
    "a join of three": (
        (
            f"{DERIVED} JOIN refunds ON orders.id = refunds.id AND refunds.at BETWEEN orders.at AND orders.at "
            "»JOIN refunds ON orders.id = refunds.id;"
        ),
        "DERIVED d",
        "There is another JOIN",
        "two sources",
    ),
    "a join with OR": (
        f"{DERIVED} JOIN refunds ON orders.id = refunds.id »OR orders.shop = refunds.id;",
        "DERIVED d, ON",
        "no OR",
        "each condition",
    ),
    "a source joined with itself by one name": (
        f"{DERIVED} »JOIN orders ON orders.id = orders.id;",
        "DERIVED d",
        "Both sides are called 'orders'",
        "AS a JOIN",
    ),
    "a pattern in another order": (
        f"{DERIVED} MATCH_RECOGNIZE (PARTITION BY shop ORDER BY »id PATTERN (a) WITHIN INTERVAL '1 day');",
        "DERIVED d, MATCH_RECOGNIZE",
        "not in the order of id",
        "ORDER BY at",
    ),
    "a pattern without an end": (
        f"{DERIVED} MATCH_RECOGNIZE (PARTITION BY shop ORDER BY at PATTERN (a»));".replace("(a»)", "(a)»"),
        "DERIVED d, MATCH_RECOGNIZE",
        "WITHIN is missing",
        "WITHIN INTERVAL",
    ),
    "all rows of a match": (
        f"{DERIVED} MATCH_RECOGNIZE (PARTITION BY shop ORDER BY at »ALL ROWS PER MATCH PATTERN (a));",
        "DERIVED d, MATCH_RECOGNIZE",
        "not all of its rows",
        "ONE ROW PER MATCH",
    ),
    # Views.
    "a comma behind what is shown": (
        f"{VIEW.replace(' FROM', '», FROM')} GROUP BY shop;",
        "VIEW v, SELECT",
        "A comma has nothing behind it",
        "delete the comma",
    ),
    "no FROM": ("CREATE VIEW v AS SELECT count(*) AS n»;", "VIEW v", "FROM is missing", "write SELECT"),
    "everything": (
        "CREATE VIEW v AS SELECT »* FROM orders;",
        "VIEW v, SELECT",
        "does not show all columns",
        "keys",
    ),
    "no repetitions": (
        "CREATE VIEW v AS SELECT »DISTINCT shop FROM orders;",
        "VIEW v",
        "no SELECT DISTINCT",
        "one row",
    ),
    "a common table expression": (
        "CREATE VIEW v AS »WITH x AS (SELECT 1) SELECT 1;",
        "VIEW v",
        "no WITH",
        "DERIVED",
    ),
    "a query in the query": (
        "CREATE VIEW v AS SELECT count(*) AS n FROM »(SELECT * FROM orders) AS x;",
        "VIEW v, FROM",
        "There is a query in the query",
        "CREATE DERIVED",
    ),
    "a window in FROM": (
        (
            "CREATE VIEW v AS SELECT count(*) AS n FROM »TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), "
            "INTERVAL '1 day'));"
        ),
        "VIEW v, FROM",
        "A window is not in FROM",
        "GROUP BY",
    ),
    "two names in FROM": (
        f"{VIEW}», refunds GROUP BY shop;",
        "VIEW v, FROM",
        "FROM has several names",
        "UNION ALL",
    ),
    "a measure that there is not": (
        f"{VIEW.replace('count', '»median')} GROUP BY shop;",
        "VIEW v, SELECT",
        "There is no measure 'median'",
        "quantile(x, 0.5)",
    ),
    "a function that there is not": (
        f"{VIEW.replace('count', '»frobnicate')} GROUP BY shop;",
        "VIEW v, SELECT",
        "There is no measure 'frobnicate'",
        "formula",
    ),
    "different values": (
        f"{VIEW.replace('count(*)', 'count(»DISTINCT city)')} GROUP BY shop;",
        "VIEW v, SELECT, count()",
        "count has no DISTINCT",
        "approx_count_distinct",
    ),
    "a measure without a name": (
        f"{VIEW.replace(' AS n', '»')} GROUP BY shop;".replace("» FROM", " »FROM"),
        "VIEW v, SELECT",
        "AS is missing before 'FROM'",
        "give the measure a name",
    ),
    "a measure twice": (
        f"{VIEW.replace(' FROM', ', sum(amount) AS »n FROM')} GROUP BY shop;",
        "VIEW v, SELECT",
        "Measure 'n' is there twice",
        "rename",
    ),
    "measures that are added up": (
        f"{VIEW.replace(' AS n', ' »/ sum(n) AS n')} GROUP BY shop;",
        "VIEW v, SELECT",
        "'/' does not belong behind a measure",
        "formula(",
    ),
    "too many arguments": (
        f"{VIEW.replace('count(*)', '»sum(a, b)')} GROUP BY shop;",
        "VIEW v, SELECT, sum()",
        "sum does not take these arguments",
        "write sum(x)",
    ),
    "a rank that is none": (
        f"{VIEW.replace('count(*)', 'quantile(amount, »n)')} GROUP BY shop;",
        "VIEW v, SELECT, quantile()",
        "'n' is not a number of quantile",
        "0.95",
    ),
    "a formula without parts": (
        f"{VIEW.replace('count(*)', '»formula(1)')} GROUP BY shop;",
        "VIEW v, SELECT, formula()",
        "has an expression and parts",
        "formula('expression",
    ),
    "a formula of a formula": (
        f"{VIEW.replace('count(*)', 'formula(1, a => »formula(1, b => count(*)))')} GROUP BY shop;",
        "VIEW v, SELECT, formula()",
        "The part 'a' is not a measure with a state",
        "formula('expression",
    ),
    "a number without end": (
        f"{VIEW.replace('count(*)', f'top(city, »{9 * 10**400})')} GROUP BY shop;",
        "VIEW v, SELECT, top()",
        "is not a number of top",
        "write a number",
    ),
    "a number that is too large": (
        f"{VIEW} GROUP BY shop EXPECT n >= »1e999;",
        "VIEW v, EXPECT",
        "1e999 is too large",
        "DOUBLE",
    ),
    "a list of lists": (
        f"CREATE SOURCE s (a INT, WATERMARK FOR a) WITH (topic = ({'»('}{'(' * 5000});",
        "SOURCE s, WITH",
        "A list has no lists",
        "write",
    ),
    "a ratio of some rows": (
        f"{VIEW.replace('count(*)', '»ratio(a, b) FILTER (WHERE c)')} GROUP BY shop;",
        "VIEW v, SELECT, ratio()",
        "ratio takes no FILTER",
        "ratio(above, below)",
    ),
    "a key that is an expression": (
        "CREATE VIEW v AS SELECT »shop || city, count(*) AS n FROM orders;",
        "VIEW v, SELECT",
        "neither a key nor a measure",
        "name AS expression",
    ),
    "a key with another name": (
        f"{VIEW.replace('shop', 'shop »AS s')} GROUP BY shop;",
        "VIEW v, SELECT",
        "keeps the name of its column",
        "leave AS out",
    ),
    "a key that is not grouped by": (
        f"{VIEW.replace('shop', '»shop')};",
        "VIEW v",
        "'shop' is shown, and not grouped",
        "GROUP BY",
    ),
    "a key that is not shown": (
        f"{VIEW} GROUP BY shop, city»;",
        "VIEW v",
        "'city' is grouped by, and not shown",
        "SELECT",
    ),
    "a key twice": (f"{VIEW} GROUP BY shop, »shop;", "VIEW v, GROUP BY", "'shop' is there twice", "delete"),
    "a key by its number": (
        f"{VIEW} GROUP BY »1;",
        "VIEW v, GROUP BY",
        "'1' is not a column",
        "name AS expression",
    ),
    "a key that is computed": (
        f"{VIEW} GROUP BY »upper(shop);",
        "VIEW v, GROUP BY",
        "'upper(shop)' is not a column",
        "Windows are TUMBLE",
    ),
    "a window that is shown": (
        f"{VIEW.replace('shop', '»TUMBLE(at, INTERVAL 1 DAY)')};",
        "VIEW v, SELECT",
        "A window is not shown",
        "window_start",
    ),
    "two windows": (
        f"{VIEW} GROUP BY shop, SESSION(at, INTERVAL '1 hour'), »SESSION(at, INTERVAL '1 day');",
        "VIEW v, GROUP BY",
        "There are two windows",
        "a view for each",
    ),
    "a window over another column": (
        f"{VIEW} GROUP BY shop, TUMBLE(»placed, INTERVAL '1 hour');",
        "VIEW v, GROUP BY, TUMBLE",
        "placed is not that",
        "write at",
    ),
    "a window without a size": (
        f"{VIEW} GROUP BY shop, TUMBLE(at»);",
        "VIEW v, GROUP BY, TUMBLE",
        "',' is missing",
        "TUMBLE(time, INTERVAL '1 hour')",
    ),
    "a window with something else": (
        f"{VIEW} GROUP BY shop, TUMBLE(at, INTERVAL '1 hour', »zones => 'UTC');",
        "VIEW v, GROUP BY, TUMBLE",
        "'zones' is no argument",
        "offset, zone",
    ),
    "sets beside keys": (
        f"{VIEW} GROUP BY shop, »ROLLUP (city);",
        "VIEW v, GROUP BY",
        "beside other keys",
        "each set",
    ),
    "a condition on groups": (
        f"{VIEW} GROUP BY shop »HAVING count(*) > 1;",
        "VIEW v",
        "no HAVING",
        "--where",
    ),
    "an order": (f"{VIEW} GROUP BY shop »ORDER BY n;", "VIEW v", "no ORDER", "when they are read"),
    "a limit": (f"{VIEW} GROUP BY shop »LIMIT 5;", "VIEW v", "no LIMIT", "top(x, 10)"),
    "a union": (
        f"{VIEW} GROUP BY shop »UNION ALL SELECT 1;",
        "VIEW v",
        "no UNION",
        "TABLE a UNION ALL TABLE b",
    ),
    "changes": (f"{VIEW} GROUP BY shop »EMIT CHANGES;", "VIEW v", "no EMIT", "sink"),
    "an expectation that is none": (
        f"{VIEW} GROUP BY shop EXPECT n »> 1;",
        "VIEW v, EXPECT",
        "'>' is no test",
        ">= 1",
    ),
    "expectations of two": (
        f"{VIEW} GROUP BY shop EXPECT n >= 1 AND »shop IS UNIQUE;",
        "VIEW v, EXPECT",
        "another column",
        "comma",
    ),
    "two arrays": (
        f"{VIEW} CROSS JOIN UNNEST(a) AS x »CROSS JOIN UNNEST(b) AS y;",
        "VIEW v, FROM",
        "another array",
        "a view for each",
    ),
    # Sinks.
    "another target": (
        f"{BY_SHOP} CREATE SINK s FROM by_shop WITH (»connector = 'mysql');",
        "SINK s, WITH",
        "There is no connector 'mysql' for a sink",
        "there are kafka, postgres, redis",
    ),
    "a sink without a topic": (
        f"{BY_SHOP} »CREATE SINK s FROM by_shop WITH (connector = 'kafka');",
        "SINK s, WITH",
        "topic is missing",
        "CREATE SINK",
    ),
    # Letters.
    "a comment that does not end": ("»/* CREATE VIEW v; /* */ ", "", "A comment does not end", "*/"),
    "a quoted name that does not end": (
        "CREATE VIEW »`v AS SELECT 1;",
        "",
        "A quoted name does not end",
        "close it",
    ),
    "a letter that means nothing": ("CREATE VIEW v AS SELECT »\0 FROM orders;", "", "U+0000", "delete"),
    "a letter of width zero": ("CREATE VIEW v»\u200b AS SELECT 1;", "", "U+200B", "delete"),
    "a template": (
        "CREATE VIEW v AS SELECT »{% x %} FROM orders;",
        "VIEW v, SELECT",
        "neither a key nor a measure",
        "",
    ),
}


def find_mark(text: str) -> tuple[str, int, int]:
    """Return a text without its mark, and the line and column of that."""
    before = text.partition("»")[0]
    return text.replace("»", "", 1), before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize("name", WRONG)
def test_the_author_is_sent_to_the_very_place(name: str) -> None:
    """A file of a thousand lines is mended where the message points, by what the message says."""
    statements, clause, message, hint = WRONG[name]
    text, line, column = find_mark(f"{BEGIN}{statements}")
    with pytest.raises(DefinitionError) as caught:
        read_pipeline_text(text, "shop.sql")
    error = caught.value
    assert message in error.message
    assert hint in error.hint
    assert error.hint
    assert (error.line, error.column, error.field) == (line, column, clause), str(error)
    assert str(error).startswith(f"shop.sql:{line}:{column}: ")


def test_a_text_that_does_not_end_is_found_at_its_quote() -> None:
    """The rest of the file is in it: only its first quote says where to look."""
    text = f"{BEGIN}CREATE VIEW v AS SELECT count(*) AS n FROM orders WHERE shop = 'a;\n{BY_SHOP}".replace(
        "'1 hour'", "1 hour"
    )
    with pytest.raises(DefinitionError, match=r"shop.sql:4:64: A text does not end\.") as caught:
        read_pipeline_text(text, "shop.sql")
    assert caught.value.column == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The file declares no pipeline."),
        (";;; -- nothing", "The file declares no pipeline."),
        (f"{ORDERS} {BY_SHOP}", "The file declares no pipeline."),
        (HEAD, "The pipeline has no source."),
        ("CREATE PIPELINE p;", "batch.interval is missing."),
        ("CREATE PIPELINE p WITH (batch.interval = '1 day');", "batch.start is missing."),
        (
            HEAD.replace("defaults", "stream.restart = 'never', defaults"),
            "There is no restart policy 'never'.",
        ),
        (HEAD.replace("defaults", "batch.within = 'x', defaults"), "batch.within is not a setting here."),
        (HEAD.replace("defaults", "rules = 'x', defaults"), "rules is not a setting here."),
        (HEAD.replace("defaults", "stream.restart.delay = 'x', defaults"), "stream.restart.delay is not"),
    ],
)
def test_a_file_is_one_whole_pipeline(text: str, message: str) -> None:
    """What is missing is said, and not made up."""
    with pytest.raises(DefinitionError, match=re.escape(message)):
        read_pipeline_text(text, "shop.sql")


def test_a_mistake_in_ten_thousand_lines_is_found() -> None:
    """Files are generated, too; reading one takes no time that somebody would notice."""
    views = [
        f"CREATE VIEW v{number} AS\nSELECT shop,\n  count(*) AS n\nFROM orders\nGROUP BY shop;"
        for number in range(2000)
    ]
    whole = read_pipeline_text("\n".join([HEAD, ORDERS, *views]), "shop.sql")
    assert [view.name for view in whole.views] == [f"v{number}" for number in range(2000)]
    views[1500] = views[1500].replace("count(*)", "count(*))")
    with pytest.raises(DefinitionError) as caught:
        read_pipeline_text("\n".join([HEAD, ORDERS, *views]), "shop.sql")
    assert caught.value.line == 2 + 1500 * 5 + 3


def test_what_stands_in_a_comment_or_a_text_is_not_read() -> None:
    """A comment that hides half a statement, or a text that looks like one, changes nothing else."""
    hidden = BY_SHOP.replace("FROM", "/* FROM nowhere; */ -- FROM 'nowhere\n FROM").replace(
        "GROUP", "WHERE city <> '; DROP /* -- ' AND shop <> \"it's\" GROUP"
    )
    found = read_pipeline_text(f"{HEAD} {ORDERS} {hidden}", "shop.sql").views[0]
    assert found.where == "city <> '; DROP /* -- ' AND shop <> \"it's\""


def test_a_byte_order_mark_and_other_line_ends_are_no_mistake() -> None:
    """Editors of other systems write them."""
    text = f"{HEAD}\r\n{ORDERS}\r\n{BY_SHOP}"
    plain = read_pipeline_text(text.replace("\r", ""), "shop.sql")
    assert read_pipeline_text(text, "shop.sql") == plain
    assert SCHEMA in repr(plain)
