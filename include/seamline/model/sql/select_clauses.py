"""The clauses of a view's query: what it shows, whose rows it counts, by what it groups them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from seamline.model.definition.windows import Global, Window
from seamline.model.measures import Measure
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Scope, is_plain_name
from seamline.model.sql.select_measures import begins_measure, read_measure
from seamline.model.sql.slices import SqlText, unquote
from seamline.model.sql.time_windows import FORMS, begins_window, read_window
from seamline.model.sql.tokens import SqlToken, TokenKind
from seamline.model.sql.words import CLAUSES

SHOWN = ("window_start", "window_end", "window_number", "grouping")
"""Columns that an answer has anyway."""
MOST_CUBED = 10
"""Keys of a CUBE: each one more doubles the sets, and a record counts in all of them."""
SAMPLE = "write SELECT key, count(*) AS n FROM source GROUP BY key, TUMBLE(time, INTERVAL '1 hour')."
NO_EXPRESSION = "name it among the columns of its source: name AS expression."


@dataclass
class Shown:
    """What a query shows."""

    columns: dict[str, SqlToken] = field(default_factory=dict)
    """The keys, and where each stands."""
    measures: dict[str, Measure] = field(default_factory=dict)
    """The measures by name."""
    places: dict[str, SqlToken] = field(default_factory=dict)
    """Where each measure stands."""


@dataclass
class Grouped:
    """What a query groups by."""

    keys: list[str] = field(default_factory=list)
    """The keys in their order."""
    window: Window | None = None
    """The window, if one is said."""
    sets: list[list[str]] = field(default_factory=list)
    """The grouping sets."""
    token: SqlToken | None = None
    """Where the window stands."""


def skip_select(reader: Reader) -> int:
    """Go on to FROM, of which the rest depends, and return where what is shown begins."""
    begin = reader.at
    if reader.next.word in ("DISTINCT", "ALL"):
        reader.fail(
            f"There is no SELECT {reader.next.word}.", "a view has one row for each key and window anyway."
        )
    depth = 0
    while reader.next.kind is not TokenKind.END and reader.next.symbol != ";":
        if depth == 0 and reader.next.word == "FROM":
            return begin
        depth += (reader.next.symbol == "(") - (reader.next.symbol == ")")
        if depth < 0:
            reader.fail("')' closes nothing.", "delete it.")
        reader.take()
    reader.fail("FROM is missing.", SAMPLE)


def read_shown(reader: Reader, scope: Scope) -> Shown:
    """Read keys and measures up to FROM."""
    found = Shown()
    while True:
        read_item(reader, scope, found)
        if not reader.accept_symbol(","):
            break
        reader.refuse_comma(CLAUSES)
    if not reader.is_words("FROM"):
        reader.fail(f"{reader.next.shown} does not belong here.", "put a comma between what is shown.")
    return found


def read_item(reader: Reader, scope: Scope, found: Shown) -> None:
    """Read a key, or a measure with its name."""
    token = reader.next
    if token.symbol == "*":
        reader.fail("A view does not show all columns.", "name its keys and measures.")
    if not begins_measure(reader):
        return read_key(reader, scope, found)
    if begins_window(reader):
        reader.fail(
            "A window is not shown.", f"write window_start or window_end; {token.word} belongs to GROUP BY."
        )
    made = read_measure(reader, scope)
    if not reader.is_words("AS") and not reader.is_words("FROM") and reader.next.symbol != ",":
        reader.fail(
            f"{reader.next.shown} does not belong behind a measure.",
            "an expression over measures is formula('a / b', a => sum(x), b => count(*)), or ratio(a, b).",
        )
    reader.expect("AS", hint="give the measure a name: count(*) AS n.")
    named = reader.name("the name of a measure")
    if unquote(named) in found.measures:
        reader.fail(f"Measure {unquote(named)!r} is there twice.", "rename one of them.", named)
    found.measures[unquote(named)], found.places[unquote(named)] = made, token


def read_key(reader: Reader, scope: Scope, found: Shown) -> None:
    """Read a column that is a key, or one that an answer has anyway."""
    shown = reader.expression("A key or a measure", ("AS", *CLAUSES))
    named = scope.name(shown)
    if not is_plain_name(named):
        reader.fail(
            f"{shown.text!r} is neither a key nor a measure.",
            f"a measure is such as sum(amount) AS total; to group by an expression, {NO_EXPRESSION}",
            shown.token,
        )
    if reader.is_words("AS"):
        reader.fail("A key keeps the name of its column.", f"leave AS out, or {NO_EXPRESSION}")
    name = unquote(named.token)
    if name in found.columns:
        reader.fail(f"{name!r} is there twice.", "delete one of them.", shown.token)
    found.columns[name] = shown.token


def read_grouped(reader: Reader, scope: Scope, shown: Shown) -> Grouped:
    """Read ``GROUP BY`` where it stands next; without it a view has one row for all."""
    found = Grouped()
    if reader.accept("GROUP", "BY"):
        with reader.within("GROUP BY"):
            read_group(reader, scope, found)
            while reader.accept_symbol(","):
                reader.refuse_comma(CLAUSES)
                read_group(reader, scope, found)
    columns = {
        name: token for name, token in shown.columns.items() if name not in SHOWN or name in found.keys
    }
    if found.sets:
        grouped = [name for each in found.sets for name in each]
        found.keys = [*found.keys, *(name for name in columns if name in grouped)]
    require_same_keys(reader, found, columns)
    return found


def require_same_keys(reader: Reader, found: Grouped, columns: dict[str, SqlToken]) -> None:
    """Refuse a query that shows other columns than its keys."""
    grouped = [*found.keys, *(name for each in found.sets for name in each)]
    for name, token in columns.items():
        if name not in grouped:
            reader.fail(
                f"{name!r} is shown, and not grouped by.", f"add it to GROUP BY, or write max({name}).", token
            )
    for name in grouped:
        if name not in columns:
            reader.fail(
                f"{name!r} is grouped by, and not shown.", "add it to SELECT: an answer has all keys."
            )


def read_group(reader: Reader, scope: Scope, found: Grouped) -> None:
    """Read a key, a window or grouping sets."""
    token = reader.next
    if begins_window(reader):
        if found.window is not None:
            reader.fail("There are two windows.", "a view has one; declare a view for each.")
        found.window, found.token = read_window(reader, scope), token
        return
    sets = read_sets(reader, scope)
    if sets:
        if found.sets or found.keys:
            reader.fail("Grouping sets stand beside other keys.", "write all keys into each set.", token)
        found.sets = sets
        return
    if found.sets:
        reader.fail("Grouping sets stand beside other keys.", "write all keys into each set.", token)
    name = read_group_key(reader, scope)
    if name in found.keys:
        reader.fail(f"{name!r} is there twice.", "delete one of them.", token)
    found.keys.append(name)


def read_group_key(reader: Reader, scope: Scope) -> str:
    """Read one key."""
    shown = reader.expression("A key", CLAUSES)
    named = scope.name(shown)
    if not is_plain_name(named):
        calls = f" Windows are {', '.join(FORMS)}." if "(" in shown.text else ""
        reader.fail(
            f"{shown.text!r} is not a column.",
            f"to group by an expression, {NO_EXPRESSION}{calls}",
            shown.token,
        )
    return unquote(named.token)


def read_sets(reader: Reader, scope: Scope) -> list[list[str]]:
    """Read ``GROUPING SETS ((a, b), ())``, ``ROLLUP (a, b)`` or ``CUBE (a, b)``; nothing where none stands next."""
    hint = "write GROUPING SETS ((a, b), (a), ())."
    if reader.accept("GROUPING", "SETS"):
        return reader.list_items(lambda: read_set(reader, scope), hint)
    if reader.next.word in ("ROLLUP", "CUBE") and reader.peek().symbol == "(":
        token = reader.take()
        word, keys = token.word, read_set(reader, scope)
        if word == "ROLLUP":
            return [keys[:size] for size in range(len(keys), -1, -1)]
        if len(keys) > MOST_CUBED:
            reader.fail(
                f"CUBE of {len(keys)} keys has a set for every choice of them, which is too many.",
                f"take {MOST_CUBED} keys at most, or list the sets: GROUPING SETS ((a, b), (a), ()).",
                token,
            )
        return [[*each] for size in range(len(keys), -1, -1) for each in combinations(keys, size)]
    return []


def read_set(reader: Reader, scope: Scope) -> list[str]:
    """Read keys in brackets, or one without."""
    if reader.next.symbol != "(":
        return [read_group_key(reader, scope)]
    return reader.list_items(lambda: read_group_key(reader, scope), "write the keys in brackets.")


def window_of(grouped: Grouped) -> Window:
    """Return the window of a view; without one it has one row for each key."""
    return grouped.window or Global()


def name_list(names: Sequence[str]) -> str | Sequence[str]:
    """Return one name as itself, and several as a list."""
    return names[0] if len(names) == 1 else [*names]


def text_of(scope: Scope, found: SqlText) -> str:
    """Return an expression's text by the names of the rows."""
    return scope.name(found).text
