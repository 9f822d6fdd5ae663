"""The changes among an epoch's rows, found by sorting numbers: what ``changes_sql`` finds by windows, in less time.

An epoch's rows are in memory anyhow. More rows than that go through windows, for which DuckDB spills to disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.row_order import Flags, Places, is_constant, order_rows, rank_values
from seamline.model.compile.changes.changes_sql import GREATEST, LOGGED, list_image_fields
from seamline.model.compile.changes.compiled_changelog import DELETED, SIGN, CompiledChangelog

NOWHERE = -1
"""The place of what was not known before."""
OF_CHANGE = ("_event_time", "_partition", "_offset")
"""What a row that is added or taken away has of the change: what states need."""


@dataclass(frozen=True)
class OrderedChanges:
    """Changes by their keys, those of a key in the order of the log; before its first one is what was known of it.

    Places are in ``whole``.
    """

    changelog: CompiledChangelog
    """Whose changes they are."""
    whole: pa.Table
    """What was known of rows of the table, then rows of the log, both with the columns of what is known."""
    rows: pa.Table
    """The rows of the log, in its order."""
    own: Places
    """Where each change is, or what was known."""
    was: Places
    """Where what its row was is; ``NOWHERE`` for the first of a key."""
    last: Flags
    """Whether it is the last of its key."""
    greatest: Places
    """Where the greatest order of its key up to then is; ``NOWHERE`` if there is none."""

    @property
    def known(self) -> int:
        """How many rows of the table were known before."""
        return int(self.whole.num_rows - self.rows.num_rows)

    def replaced(self) -> Places:
        """Return the places of what was known that is known no longer."""
        return self.own[(self.own < self.known) & ~self.last]

    def list_contributions(self) -> pa.Table:
        """List what the changes take away and add: the columns that views count by, and ``SIGN``."""
        gone = self.whole[DELETED].to_numpy()
        new = self.own >= self.known
        added = self.own[new & ~gone[self.own]]
        taken = new & (self.was != NOWHERE) & ~gone[self.was]
        signed = [(1, added, added), (-1, self.own[taken], self.was[taken])]
        return pa.concat_tables([self.pick_signed(*each) for each in signed])

    def pick_signed(self, sign: int, changes: Places, images: Places) -> pa.Table:
        """Pick the columns of rows that some changes add or take away."""
        of_change = take_rows(self.rows.select(OF_CHANGE), changes - self.known)
        names = [each.name for each in self.changelog.columns]
        counted = take_rows(self.whole.select(names), images)
        signs = pa.repeat(pa.scalar(sign, pa.int32()), len(changes))
        return pa.table(
            [signs, *of_change.columns, *counted.columns], names=[SIGN, *of_change.column_names, *names]
        )

    def list_new_images(self) -> pa.Table:
        """List what is known from now on in place of what is ``replaced``; without an order no deleted row is."""
        kept = self.last & (self.own >= self.known)
        if not self.changelog.changes.order:
            kept &= ~self.whole[DELETED].to_numpy()[self.own]
        greatest = self.greatest[kept]
        orders = self.whole[GREATEST].combine_chunks().take(pa.array(greatest, mask=greatest == NOWHERE))
        images = take_rows(self.whole, self.own[kept])
        return images.set_column(images.column_names.index(GREATEST), GREATEST, orders)


def order_changes(changelog: CompiledChangelog, images: pa.Table, rows: pa.Table) -> OrderedChanges:
    """Find the changes among rows, in whatever order they are; ``images`` are what is known of just their keys."""
    rows = order_by_log(rows)
    names, order = [each.name for each in list_image_fields(changelog)], changelog.changes.order
    kind = images.schema.field(GREATEST).type
    orders = rows[order.name] if order else pa.nulls(rows.num_rows, kind)
    own = rows.select([*names, DELETED]).append_column(GREATEST, orders)
    whole = pa.concat_tables([images, own.select(images.column_names).cast(images.schema)]).combine_chunks()
    keys = number_keys(whole.select([each.name for each in changelog.changes.key]))
    # Behind the number of its key is the place of a row: so they are sorted without being compared.
    ordered = np.sort(keys << 32 | np.arange(len(keys)))
    places, keys = ordered & (1 << 32) - 1, ordered >> 32
    greatest, late = find_greatest(whole[GREATEST], places, first_of_runs(keys))
    chosen = ~late | (places < images.num_rows)
    places, keys, greatest = places[chosen], keys[chosen], greatest[chosen]
    first = first_of_runs(keys)
    was = np.where(first, NOWHERE, np.roll(places, 1))
    return OrderedChanges(changelog, whole, rows, places, was, np.roll(first, -1), greatest)


def order_by_log(rows: pa.Table) -> pa.Table:
    """Put rows in the order of the log; most often they are."""
    if not (by := [name for name in LOGGED if rows.num_rows and not is_constant(rows[name])]):
        return rows
    order = order_rows(rows, by)
    return rows if (order.to_numpy() == np.arange(rows.num_rows)).all() else rows.take(order)


def number_keys(keys: pa.Table) -> Places:
    """Number the keys of rows, equal ones alike: NULL is a value like any other."""

    def number(column: pa.ChunkedArray) -> Places:
        found = column.combine_chunks().dictionary_encode(null_encoding="encode")
        places: Places = found.indices.to_numpy().astype(np.int64)
        return places

    def join(some: Places, more: Places) -> Places:
        return number(pa.chunked_array([pa.array(some * (int(more.max(initial=0)) + 1) + more)]))

    return reduce(join, map(number, keys.columns))


def find_greatest(orders: pa.ChunkedArray, places: Places, first: Flags) -> tuple[Places, Flags]:
    """Find where the greatest order up to each row of its key is, and which rows come with a lower one than before.

    ``places`` are those of the rows by their keys, ``first`` says where a key begins.
    """
    if orders.null_count == len(orders):
        return np.full(len(places), NOWHERE), np.zeros(len(places), np.bool_)
    ordered = orders.combine_chunks().take(pa.array(places))
    if not orders.null_count and not (pc.less(ordered[1:], ordered[:-1]).to_numpy(False) & ~first[1:]).any():
        return places, np.zeros(len(places), np.bool_)
    ranks = rank_values(pa.chunked_array([ordered])).astype(np.int64) + 1
    ranks[ordered.is_null().to_numpy(False)] = 0
    most = int(ranks.max()) + 1
    base = np.cumsum(first) * most
    greatest = np.maximum.accumulate(base + ranks) - base
    before = np.where(first, 0, np.roll(greatest, 1))
    some = np.full(most, NOWHERE)
    some[ranks] = places
    some[0] = NOWHERE
    return some[greatest], (ranks > 0) & (ranks < before)


def first_of_runs(numbers: Places) -> Flags:
    """Return which of sorted numbers differ from those before."""
    return np.append(np.ones(min(len(numbers), 1), np.bool_), numbers[1:] != numbers[:-1])


def take_rows(table: pa.Table, places: Places) -> pa.Table:
    """Return the rows at some places."""
    return table.take(pa.array(places))
