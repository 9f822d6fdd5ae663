"""Words that have a meaning of their own in a statement."""

from __future__ import annotations

RESERVED = frozenset(
    (
        *(
            "ALL",
            "AND",
            "AS",
            "BETWEEN",
            "BY",
            "CASE",
            "CREATE",
            "CROSS",
            "DISTINCT",
            "ELSE",
            "END",
            "EXCEPT",
        ),
        *(
            "EXPECT",
            "FOR",
            "FROM",
            "FULL",
            "GROUP",
            "HAVING",
            "IN",
            "INNER",
            "INTERSECT",
            "INTO",
            "IS",
            "JOIN",
        ),
        *(
            "LATERAL",
            "LIKE",
            "LIMIT",
            "NATURAL",
            "NOT",
            "NULL",
            "ON",
            "OR",
            "ORDER",
            "OUTER",
            "SELECT",
        ),
        *("TABLE", "THEN", "UNION", "UNNEST", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH"),
    )
)
"""Words that are no names unless they are quoted."""
CLAUSES = frozenset(
    (
        *(
            "FROM",
            "WHERE",
            "GROUP",
            "HAVING",
            "ORDER",
            "LIMIT",
            "WINDOW",
            "QUALIFY",
            "UNION",
            "EXCEPT",
            "INTERSECT",
        ),
        *("WITH", "EXPECT", "EMIT", "MATCH_RECOGNIZE"),
    )
)
"""Words that begin a clause of a query, where they stand in no brackets."""
JOINS = frozenset(
    ("JOIN", "CROSS", "LEFT", "RIGHT", "FULL", "INNER", "NATURAL", "ASOF", "LATERAL", "ON", "FOR")
)
"""Words that begin a part of a join."""
