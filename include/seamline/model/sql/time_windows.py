"""Windows as ``GROUP BY`` has them: ``TUMBLE(at, INTERVAL '1 hour')``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seamline.model.definition.windows import CountWindow, Cumulating, Session, Sliding, Tumbling, Window
from seamline.model.sql.durations import read_interval, read_number
from seamline.model.sql.options import TRUTHS
from seamline.model.sql.reader import Reader
from seamline.model.sql.scope import Scope
from seamline.model.sql.tokens import SqlToken

FORMS = {
    "TUMBLE": "TUMBLE(time, INTERVAL '1 hour')",
    "HOP": "HOP(time, INTERVAL '10 minutes', INTERVAL '1 hour'): the slide, then the size",
    "CUMULATE": "CUMULATE(time, INTERVAL '1 hour', INTERVAL '1 day'): the step, then the size",
    "SESSION": "SESSION(time, INTERVAL '30 minutes')",
    "COUNT_WINDOW": "COUNT_WINDOW(100)",
}


def begins_window(reader: Reader) -> bool:
    """Return whether a window stands next."""
    return reader.next.word in FORMS and reader.peek().symbol == "("


def read_window(reader: Reader, scope: Scope) -> Window:
    """Read a window; DefinitionError where it is not over the event time."""
    token = reader.take()
    hint = f"write {FORMS[token.word]}."
    with reader.within(token.word):
        reader.expect_symbol("(", hint)
        found = WINDOWS[token.word](reader, scope, hint)
        reader.expect_symbol(")", hint)
    return found


def read_time(reader: Reader, scope: Scope, hint: str) -> None:
    """Read the event time, over which a window is."""
    found = reader.expression("The event time")
    if scope.times and scope.name(found).text not in scope.times:
        times = " or ".join(sorted(scope.times))
        reader.fail(
            f"A window is over the event time, and {found.text} is not that.", f"write {times}.", found.token
        )
    reader.expect_symbol(",", hint)


def read_two(reader: Reader, hint: str) -> tuple[str, str]:
    """Read two lengths."""
    first = read_interval(reader)
    reader.expect_symbol(",", hint)
    return first, read_interval(reader)


def read_more(
    reader: Reader, readers: Mapping[str, Callable[[Reader], Any]], first: str = ""
) -> dict[str, Any]:
    """Read what else a window says: ``name => value``; the one of ``first`` may be without its name."""
    found: dict[str, Any] = {}
    while reader.accept_symbol(","):
        reader.refuse_comma()
        if first and not found and reader.is_words("INTERVAL"):
            found[first] = read_interval(reader)
            continue
        token = reader.name("the name of an argument")
        name = token.text.lower()
        if name not in readers or name in found:
            told = "is there twice" if name in found else "is no argument of this window"
            reader.fail(f"{token.shown} {told}.", f"there are {', '.join(readers)}.", token)
        reader.expect_symbol("=>", f"write {name} => value.")
        found[name] = readers[name](reader)
    return found


RULED: Mapping[str, Callable[[Reader], Any]] = {
    "offset": read_interval,
    "zone": lambda reader: reader.string("a time zone"),
}


def read_tumble(reader: Reader, scope: Scope, hint: str) -> Tumbling:
    """Read the arguments of TUMBLE."""
    read_time(reader, scope, hint)
    return Tumbling(read_interval(reader), **read_more(reader, RULED, "offset"))


def read_hop(reader: Reader, scope: Scope, hint: str) -> Sliding:
    """Read the arguments of HOP."""
    read_time(reader, scope, hint)
    slide, size = read_two(reader, hint)
    return Sliding(size, slide, **read_more(reader, RULED, "offset"))


def read_cumulate(reader: Reader, scope: Scope, hint: str) -> Cumulating:
    """Read the arguments of CUMULATE."""
    read_time(reader, scope, hint)
    step, size = read_two(reader, hint)
    return Cumulating(size, step, **read_more(reader, RULED, "offset"))


def read_session(reader: Reader, scope: Scope, hint: str) -> Session:
    """Read the arguments of SESSION."""
    read_time(reader, scope, hint)
    return Session(read_interval(reader))


def read_count_window(reader: Reader, _scope: Scope, _hint: str) -> CountWindow:
    """Read the arguments of COUNT_WINDOW."""
    events = read_whole(reader)
    more = {"slide": read_whole, "begin": read_interval, "copies": read_truth}
    return CountWindow(events, **read_more(reader, more))


def read_whole(reader: Reader) -> int:
    """Read a whole number."""
    token = reader.next
    found = read_number(reader, "a number of events")
    if not isinstance(found, int):
        reader.fail(f"{token.shown} is not a whole number.", "write how many events.", token)
    return found


def read_truth(reader: Reader) -> bool:
    """Read TRUE or FALSE."""
    token: SqlToken = reader.next
    if token.word not in TRUTHS:
        reader.fail(f"{token.shown} is neither TRUE nor FALSE.", "write TRUE or FALSE.")
    return TRUTHS[reader.take().word]


WINDOWS: Mapping[str, Callable[[Reader, Scope, str], Window]] = {
    "TUMBLE": read_tumble,
    "HOP": read_hop,
    "CUMULATE": read_cumulate,
    "SESSION": read_session,
    "COUNT_WINDOW": read_count_window,
}
