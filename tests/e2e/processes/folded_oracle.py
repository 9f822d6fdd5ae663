"""What the topics of the examples of folds hold, counted by pandas: nothing of Seamline is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pandas as pd
from tests.e2e.joined_oracle import Held, Late, View, floors

LOGINS, READINGS = "examples.logins", "examples.machine_readings"
PAGES, SCREENS = "examples.web_pages", "examples.app_screens"
TEN_MINUTES = pd.Timedelta("10min")


def sort_rows(held: Held, topic: str, at: str = "at") -> pd.DataFrame:
    """Return the rows of a topic in the order in which they are folded."""
    rows = held[topic].assign(then=pd.to_datetime(held[topic][at], utc=True))
    return rows.sort_values(["then", "partition", "offset"])


def find_stolen(held: Held) -> list[tuple[str, str, pd.Timestamp, pd.Timestamp, int]]:
    """List what was found: account, country, time, that of the first wrong password, and how many were wrong."""
    rows = sort_rows(held, LOGINS)
    found = []
    for (account, _), own in rows.groupby(["account", rows.then.dt.floor("1h")]):
        wrong: list[pd.Timestamp] = []
        for each in own.itertuples():
            if not each.ok:
                wrong.append(each.then)
                continue
            near = [at for at in wrong if each.then - at <= TEN_MINUTES]
            if len(near) >= 3:
                found.append((account, each.country, each.then, near[0], len(near)))
            wrong = []
    return found


def count_stolen(held: Held) -> pd.DataFrame:
    """Accounts by country and hour."""
    rows = pd.DataFrame(find_stolen(held), columns=["account", "country", "at", "since", "n"])
    found = rows.assign(window_start=rows["at"].dt.floor("1h")).groupby(["country", "window_start"])
    return found.agg(accounts=("n", "size"), tries=("n", "sum")).reset_index()


def list_stolen(held: Held) -> pd.DataFrame:
    """All that was found."""
    rows = pd.DataFrame(find_stolen(held), columns=["account", "country", "at", "since", "tries"])
    found = rows.assign(window_start=rows["at"].dt.floor("1h"))
    return found.groupby(["account", "since", "tries", "window_start"]).size().reset_index(name="n")


def fold_alarms(held: Held) -> Iterator[tuple[str, str, str, pd.Timestamp, int, Decimal]]:
    """Fold the readings of each machine, day by day: hall, machine, how it ended, when, seconds and peak.

    A machine that is silent has none of the last two.
    """
    rows = sort_rows(held, READINGS)
    rows = rows[rows.celsius.astype(float) > -60]
    five = pd.Timedelta("5min")
    for (hall, machine, day), own in rows.groupby(["hall", "machine", rows.then.dt.floor("1D")]):
        since: Any = None
        peak, last = Decimal(0), None
        midnight = day + pd.Timedelta("1D")
        for at, celsius in [*zip(own.then, own.celsius, strict=True), (midnight, None)]:
            if last is not None and last + five <= at and last + five < midnight:
                yield hall, machine, "quiet", last + five, 0, Decimal(0)
                if since is not None:
                    yield hall, machine, "silent", last + five, (last + five - since).seconds, peak
                since, last = None, None
            if celsius is None:
                break
            last, degrees = at, Decimal(celsius)
            if since is None:
                since, peak = (at, degrees) if degrees >= 80 else (None, peak)
            elif degrees < 75:
                yield hall, machine, "cooled", at, (at - since).seconds, max(peak, degrees)
                since = None
            else:
                peak = max(peak, degrees)
        if since is not None:
            end = midnight - pd.Timedelta("1us")
            yield hall, machine, "midnight", end, (end - since).seconds, peak


def table_alarms(held: Held) -> pd.DataFrame:
    """Return all that was folded."""
    rows = pd.DataFrame(fold_alarms(held), columns=["hall", "machine", "ended", "at", "seconds", "peak"])
    return rows.assign(window_start=rows["at"].dt.floor("1h"))


def count_alarms(held: Held) -> pd.DataFrame:
    """Alarms by hall, how they ended, and hour."""
    rows = table_alarms(held)
    found = rows[rows.ended != "quiet"].groupby(["hall", "ended", "window_start"])
    return found.agg(
        alarms=("seconds", "size"),
        seconds=("seconds", "sum"),
        peak=("peak", lambda each: float(sum(each)) / len(each)),
    ).reset_index()


def count_silent(held: Held) -> pd.DataFrame:
    """How often a machine was silent, by hour."""
    rows = table_alarms(held)
    found = rows[rows.ended == "quiet"].groupby(["hall", "machine", "window_start"])
    return found.size().reset_index(name="times")


def fold_visits(held: Held) -> Iterator[tuple[str, pd.Timestamp, str, int, int, int]]:
    """Cut what each visitor saw in an hour: visitor, hour, kind, views, moves and seconds of each visit."""
    web = sort_rows(held, PAGES)[["visitor", "then"]].assign(place="web")
    app = (
        sort_rows(held, SCREENS, "seen_at")[["user", "then"]]
        .rename(columns={"user": "visitor"})
        .assign(place="app")
    )
    rows = pd.concat([web, app])
    for (visitor, hour), own in rows.groupby(["visitor", rows.then.dt.floor("1h")]):
        seen = sorted(zip(own.then, own.place, strict=True))
        visit = seen[:1]
        for one, other in [*pairwise(seen), (seen[-1], None)]:
            if other is not None and other[0] - one[0] <= TEN_MINUTES:
                visit.append(other)
                continue
            places = [place for _, place in visit]
            kind = "both" if len({*places}) > 1 else places[0]
            moves = sum(a != b for a, b in pairwise(places))
            yield visitor, hour, kind, len(visit), moves, int((visit[-1][0] - visit[0][0]).total_seconds())
            visit = [other] if other else []


def table_visits(held: Held) -> pd.DataFrame:
    """Return all visits."""
    columns = ["visitor", "window_start", "kind", "n", "went", "seconds"]
    return pd.DataFrame(fold_visits(held), columns=columns)


def count_visits(held: Held) -> pd.DataFrame:
    """Visits by kind and hour."""
    found = table_visits(held).groupby(["kind", "window_start"])
    return found.agg(visits=("n", "size"), views=("n", "sum"), mean_seconds=("seconds", "mean")).reset_index()


def count_moves(held: Held) -> pd.DataFrame:
    """Visits of both places by visitor and hour."""
    rows = table_visits(held)
    found = rows[rows.kind == "both"].groupby(["visitor", "window_start"])
    return found.agg(visits=("n", "size"), moves=("went", "sum")).reset_index()


def count_logins(held: Held) -> pd.DataFrame:
    """Logins by country and hour."""
    rows = held[LOGINS]
    found = rows.assign(window_start=floors(rows, "at", "1h")).groupby(["country", "window_start"])
    return found.agg(logins=("ok", "size"), right=("ok", "sum")).reset_index()


def count_pages(held: Held) -> pd.DataFrame:
    """Views of pages by hour."""
    rows = held[PAGES]
    found = rows.assign(window_start=floors(rows, "at", "1h")).groupby(["page", "window_start"])
    return found.size().reset_index(name="views")


def late_login(held: Held, span: tuple[str, str]) -> Late:
    """Choose an account that was stolen: its owner came a millisecond before, with the right password."""
    start, end = map(pd.Timestamp, span)
    account, country, at, *_ = next(each for each in find_stolen(held) if start <= each[2] < end)
    then = at - pd.Timedelta("1ms")
    row = {"account": account, "country": country, "ok": True, "at": then.isoformat()}
    return Late(
        LOGINS, row, f"country={country}", f"{at.floor('1h'):%Y-%m-%dT%H:%M:%SZ}", then.value // 10**6
    )


def late_reading(held: Held, span: tuple[str, str]) -> Late:
    """Choose an alarm that was on for a while: it ended a second after it began."""
    start, end = map(pd.Timestamp, span)
    cooled = [
        each for each in fold_alarms(held) if each[2] == "cooled" and start <= each[3] < end and each[4] > 10
    ]
    hall, machine, _, at, seconds, _ = cooled[len(cooled) // 2]
    then = at - pd.Timedelta(seconds=seconds - 2)
    row = {"machine": machine, "hall": hall, "celsius": "20.0", "at": then.isoformat()}
    window = f"{then.floor('1h'):%Y-%m-%dT%H:%M:%SZ}"
    return Late(READINGS, row, f"hall={hall} ended=cooled", window, then.value // 10**6)


def late_screen(held: Held, span: tuple[str, str]) -> Late:
    """Choose a visit of the web alone: somebody looked into the app while it lasted."""
    start, end = map(pd.Timestamp, span)
    visits = table_visits(held)
    chosen = visits[
        (visits.kind == "web") & (visits.window_start >= start) & (visits.window_start < end)
    ].iloc[0]
    seen = sort_rows(held, PAGES)
    own = seen[(seen.visitor == chosen.visitor) & (seen.then.dt.floor("1h") == chosen.window_start)]
    then = own.then.iloc[0]
    row = {"user": chosen.visitor, "screen": "cart", "seen_at": then.isoformat()}
    return Late(SCREENS, row, "kind=both", f"{chosen.window_start:%Y-%m-%dT%H:%M:%SZ}", then.value // 10**6)


FOLDED: Mapping[str, Mapping[str, View]] = {
    "merged_sessions": {"by_kind": count_visits, "moves": count_moves, "pages": count_pages},
    "sensor_alarms": {"by_hall": count_alarms, "silent": count_silent},
    "stolen_passwords": {"by_country": count_stolen, "accounts": list_stolen, "logins": count_logins},
}
"""The views of each example, the one that is explained first."""
LATER: Mapping[str, Callable[[Held, tuple[str, str]], Late]] = {
    "merged_sessions": late_screen,
    "sensor_alarms": late_reading,
    "stolen_passwords": late_login,
}
