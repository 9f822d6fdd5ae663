"""The log: every epoch that the master holds, one by one or condensed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seamline.lake.layout import Layout
from seamline.lake.ledger import Ledger
from seamline.lake.ledger_files import Group, groups_of, rows_of
from seamline.lake.master import Master
from seamline.lake.pins import look
from seamline.lake.tables import Table
from seamline.model.condensed import condensed
from seamline.model.epoch import Epoch

_folded: dict[str, tuple[tuple[Group, ...], list[Epoch]]] = {}
"""By the ledger's identity, its first files and what they give condensed: of a longer ledger the rest is read."""


def known_epochs(layout: Layout) -> Sequence[Epoch]:
    """List every epoch that the master holds, also those that the ledger misses; none before the first.

    It takes memory and time for each of them: what can do with less asks ``condensed_log``.
    """
    if not Table.exists(layout.table("master")):
        return []
    held = Ledger.ensure(layout).epochs()
    last = held[-1].number if held else -1
    # The master is opened after the ledger was read: an epoch in between is found in one of the two.
    return [*held, *Master.open(layout).missing(last)]


def condensed_log(layout: Layout, *, cuts: Iterable[int] = (), until: int | None = None) -> list[Epoch]:
    """Give the log condensed, as far as ``until`` (all if None); no sum crosses ``until`` or one of the ``cuts``.

    The newest epoch is a row of its own. What is read does not grow with the log, but by a few bytes for each of the
    ledger's packed files.
    """
    bounds = {*cuts, *([] if until is None else [until])}
    held = (
        look(layout.table("ledger"), ("condensed", frozenset(bounds)), lambda it: of_ledger(it, bounds)) or []
    )
    last = held[-1].number if held else -1
    found = look(layout.table("master"), ("missing", last), lambda table: Master(table).missing(last))
    if found is None:
        return []
    rows = [*held, *found]
    if until is not None:
        return condensed((row for row in rows if row.number <= until), bounds)
    return [*condensed(rows[:-1], bounds), *rows[-1:]]


def of_ledger(table: Table, cuts: Iterable[int] = ()) -> list[Epoch]:
    """Give what a ledger has, condensed, the newest epoch as a row of its own."""
    groups, bounds = groups_of(table), sorted(cuts)
    if bounds or not groups:
        rows = list(rows_of(groups, bounds))
        return [*condensed(rows[:-1], bounds), *rows[-1:]]
    before, known = _folded.get(table.id, ((), []))
    if groups[: len(before)] != before or len(before) == len(groups):
        before, known = (), []
    known = condensed([*known, *rows_of(groups[len(before) : -1], (), newest=False)])
    _folded[table.id] = groups[:-1], known
    rows = list(rows_of(groups[-1:], ()))
    return [*condensed([*known, *rows[:-1]]), *rows[-1:]]
