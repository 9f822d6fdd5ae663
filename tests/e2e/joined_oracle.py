"""What the topics of the shipped examples of derived rows hold, counted by pandas: nothing of Seamline is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd

Held = Mapping[str, pd.DataFrame]
"""Rows by topic."""


@dataclass(frozen=True)
class Late:
    """A row of the right side that is the first partner of a left row."""

    topic: str
    row: Mapping[str, Any]
    key: str
    """The key that it changes, as ``seamline explain`` takes it."""
    window: str
    """The start of the window that it changes."""
    at_ms: int
    """When it says that it happened, in milliseconds since 1970."""


@dataclass(frozen=True)
class Joined:
    """A join as its page tells it: the topics, the names of key and times, and the bounds."""

    left: str
    right: str
    key: str
    left_at: str
    right_at: str
    before: pd.Timedelta
    after: pd.Timedelta

    def rows(self, held: Held) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return left rows, numbered, and the pairs."""
        left = held[self.left].assign(at=pd.to_datetime(held[self.left][self.left_at], utc=True))
        right = held[self.right].assign(then=pd.to_datetime(held[self.right][self.right_at], utc=True))
        left = left.reset_index(names="number")
        both = left.merge(right.drop(columns="at", errors="ignore"), on=self.key)
        within = (both.then >= both["at"] - self.before) & (both.then <= both["at"] + self.after)
        return left, both[within]

    def count(self, held: Held, by: str, size: str, **pairs: Callable[[pd.DataFrame], Any]) -> pd.DataFrame:
        """Count left rows, matched ones and pairs, by a column of the left and a window, and what else is asked."""
        left, both = self.rows(held)
        rows = []
        for (key, start), part in left.groupby([by, left["at"].dt.floor(size)]):
            own = both[both.number.isin(part.number)]
            measured = {name: measure(own) for name, measure in pairs.items()}
            matched = own.number.nunique()
            rows.append(
                {"key": key, "window_start": start, "left": len(part), "matched": matched, "pairs": len(own)}
                | {"unmatched": len(part) - matched, **measured}
            )
        return pd.DataFrame(rows)

    def late(self, held: Held, span: tuple[str, str], size: str, wait: str) -> tuple[Any, str, str, int]:
        """Choose a left row of a span that has no partner; its window, when one may come, and that in milliseconds."""
        left, both = self.rows(held)
        start, end = map(pd.Timestamp, span)
        lonely = left[~left.number.isin(both.number) & (left["at"] >= start) & (left["at"] < end)]
        chosen = lonely.sort_values("at").iloc[len(lonely) // 2]
        then = chosen["at"] + pd.Timedelta(wait)
        return chosen, f"{chosen['at'].floor(size):%Y-%m-%dT%H:%M:%SZ}", then.isoformat(), then.value // 10**6


def floors(rows: pd.DataFrame, at: str, size: str) -> pd.Series[Any]:
    """Return the start of each row's window."""
    return pd.to_datetime(rows[at], utc=True).dt.floor(size)


def sum_or_null(values: pd.Series[Any]) -> Any:
    """Sum as SQL does: nothing has no sum."""
    return values.sum() if len(values) else None


ADS = Joined(
    *("examples.impressions", "examples.clicks", "impression", "shown_at", "clicked_at"),
    *(pd.Timedelta(0), pd.Timedelta("1h")),
)
CHARGED = Joined(
    *("examples.gateway", "examples.billing", "token", "at", "at"),
    *(pd.Timedelta("60s"), pd.Timedelta("60s")),
)
SHIPPED = Joined(
    *("examples.shop_orders", "examples.shipments", "order_id", "ordered_at", "shipped_at"),
    *(pd.Timedelta(0), pd.Timedelta("14D")),
)


def by_site(held: Held) -> pd.DataFrame:
    """Impressions, clicks, and impressions that were clicked, by site and minute."""
    found = ADS.count(held, "site", "1min")
    found["rate"] = found.matched / found.left
    return found.rename(
        columns={
            "key": "shown_site",
            "left": "shown",
            "matched": "clicked",
            "pairs": "clicks",
            "unmatched": "never_clicked",
        }
    )


def cost_by_campaign(held: Held) -> pd.DataFrame:
    """Cost and impressions by campaign and hour."""
    rows = held[ADS.left]
    found = rows.assign(window_start=floors(rows, "shown_at", "1h")).groupby(["campaign", "window_start"])
    return found.agg(cost_micros=("cost_micros", "sum"), shown=("site", "size")).reset_index()


def by_route(held: Held) -> pd.DataFrame:
    """Requests and charges by route and minute."""
    found = CHARGED.count(held, "route", "1min", cents=lambda own: sum_or_null(own.charged_cents))
    return found.drop(columns="matched").rename(
        columns={
            "key": "gateway_route",
            "left": "requests",
            "pairs": "charges",
            "unmatched": "uncharged",
        }
    )


def list_pairs(held: Held) -> pd.DataFrame:
    """Pairs by token, cents and the minute of the request."""
    _, both = CHARGED.rows(held)
    found = both.assign(window_start=both["at"].dt.floor("1min"))
    grouped = found.groupby(["token", "charged_cents", "window_start"]).size().reset_index(name="n")
    return grouped.rename(columns={"token": "gateway_token", "charged_cents": "billing_charged_cents"})


def events(held: Held) -> pd.DataFrame:
    """Rows of both services by minute."""
    found = pd.concat([floors(held[topic], "at", "1min") for topic in (CHARGED.left, CHARGED.right)])
    return found.value_counts().rename_axis("window_start").reset_index(name="n")


def by_shop(held: Held) -> pd.DataFrame:
    """Orders, shipped orders and parcels by shop and day."""
    found = SHIPPED.count(held, "shop", "1D", by_rail=lambda own: int((own.carrier == "rail").sum()))
    return found.rename(
        columns={
            "key": "orders_shop",
            "left": "orders",
            "matched": "shipped",
            "pairs": "parcels",
            "unmatched": "waiting",
        }
    )


def turnover(held: Held) -> pd.DataFrame:
    """Amount and orders by shop and day."""
    rows = held[SHIPPED.left]
    found = rows.assign(window_start=floors(rows, "ordered_at", "1D"), amount=rows.amount.map(Decimal))
    return (
        found.groupby(["shop", "window_start"])
        .agg(amount=("amount", "sum"), orders=("shop", "size"))
        .reset_index()
    )


def late_click(held: Held, span: tuple[str, str]) -> Late:
    """Choose an impression that nobody clicked: half an hour later somebody did."""
    chosen, window, then, at_ms = ADS.late(held, span, "1min", "30min")
    row = {"impression": chosen.impression, "clicked_at": then}
    return Late(ADS.right, row, f"shown_site={chosen.site}", window, at_ms)


def late_charge(held: Held, span: tuple[str, str]) -> Late:
    """Choose a request that was not charged: a minute later it was."""
    chosen, window, then, at_ms = CHARGED.late(held, span, "1min", "60s")
    row = {"token": chosen.token, "charged_cents": 7, "at": then}
    return Late(CHARGED.right, row, f"gateway_route={chosen.route}", window, at_ms)


def late_shipment(held: Held, span: tuple[str, str]) -> Late:
    """Choose an order that waits: it was shipped after ten days."""
    chosen, window, then, at_ms = SHIPPED.late(held, span, "1D", "10D")
    row = {"order_id": chosen.order_id, "carrier": "rail", "shipped_at": then}
    return Late(SHIPPED.right, row, f"orders_shop={chosen.shop}", window, at_ms)


def fold_carts(held: Held) -> list[tuple[str, pd.Timestamp, str, Any, int]]:
    """Fold the clicks of each visitor of a shop, day by day: shop, time, kind, total and clicks of what was emitted."""
    rows = held[CLICKS].assign(then=pd.to_datetime(held[CLICKS]["at"], utc=True))
    rows = rows.sort_values(["then", "partition", "offset"])
    found = []
    for (shop, _, day), own in rows.groupby(["shop", "visitor", rows.then.dt.floor("1D")]):
        clicks, total, due = 0, None, None
        for each in own.itertuples():
            if due is not None and due <= each.then:
                found.append((shop, due, "left", total, clicks))
                clicks, due = 0, None
            clicks, total, due = clicks + 1, Decimal(each.total), each.then + pd.Timedelta("30min")
            if each.bought:
                found.append((shop, each.then, "bought", total, clicks))
                clicks, due = 0, None
            elif clicks == 10:
                found.append((shop, each.then, "hesitant", total, clicks))
        if due is not None and due < day + pd.Timedelta("1D"):
            found.append((shop, due, "left", total, clicks))
    return found


def count_carts(held: Held) -> pd.DataFrame:
    """Carts by shop, kind and hour, with their worth and clicks."""
    rows = pd.DataFrame(fold_carts(held), columns=["shop", "at", "kind", "total", "n"])
    rows = rows[rows.kind != "hesitant"]
    found = rows.assign(window_start=rows["at"].dt.floor("1h")).groupby(["shop", "kind", "window_start"])
    return found.agg(carts=("n", "size"), worth=("total", "sum"), clicks=("n", "mean")).reset_index()


def count_hesitant(held: Held) -> pd.DataFrame:
    """Carts of ten clicks by shop and hour."""
    rows = pd.DataFrame(fold_carts(held), columns=["shop", "at", "kind", "total", "n"])
    rows = rows[rows.kind == "hesitant"]
    found = rows.assign(window_start=rows["at"].dt.floor("1h")).groupby(["shop", "window_start"])
    return found.agg(carts=("n", "size")).reset_index()


def count_clicks(held: Held) -> pd.DataFrame:
    """Clicks by shop and hour."""
    rows = held[CLICKS]
    found = rows.assign(window_start=floors(rows, "at", "1h")).groupby(["shop", "window_start"])
    return found.agg(clicks=("visitor", "size")).reset_index()


def late_click_on_cart(held: Held, span: tuple[str, str]) -> Late:
    """Choose a cart that was left: a minute before that its visitor came back, and bought it."""
    start, end = map(pd.Timestamp, span)
    left = [each for each in fold_carts(held) if each[2] == "left" and start <= each[1] < end]
    shop, due, _, total, _ = left[len(left) // 2]
    rows = held[CLICKS].assign(then=pd.to_datetime(held[CLICKS]["at"], utc=True))
    last = rows[(rows.shop == shop) & (rows.then == due - pd.Timedelta("30min"))].iloc[0]
    then = due - pd.Timedelta("1min")
    row = {"visitor": last.visitor, "shop": shop, "total": str(total), "bought": True, "at": then.isoformat()}
    window = f"{due.floor('1h'):%Y-%m-%dT%H:%M:%SZ}"
    return Late(CLICKS, row, f"shop={shop}", window, then.value // 10**6)


CLICKS = "examples.cart_clicks"
View = Callable[[Held], pd.DataFrame]
VIEWS: Mapping[str, Mapping[str, View]] = {
    "abandoned_carts": {"by_shop": count_carts, "hesitant": count_hesitant, "clicks": count_clicks},
    "ad_attribution": {"by_site": by_site, "cost_by_campaign": cost_by_campaign},
    "interval_join": {"by_route": by_route, "pairs": list_pairs, "events": events},
    "orders_shipped": {"by_shop": by_shop, "turnover": turnover},
}
"""The views of each example, the one that counts derived rows first."""
LATE: Mapping[str, Callable[[Held, tuple[str, str]], Late]] = {
    "abandoned_carts": late_click_on_cart,
    "ad_attribution": late_click,
    "interval_join": late_charge,
    "orders_shipped": late_shipment,
}
