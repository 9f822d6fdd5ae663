"""A generator of records for each pipeline of ``include/examples``, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from seamline.local.generators import (
    abandoned_carts,
    account_balances,
    ad_attribution,
    ad_campaigns,
    card_limits,
    interval_join,
    live_campaigns,
    merged_sessions,
    orders_shipped,
    payments,
    priced_orders,
    scored_payments,
    sensor_alarms,
    sensor_average,
    stolen_passwords,
    visitors_by_country,
    web_sessions,
)
from seamline.local.generators.record import Generator, Load, Record

GENERATORS: Mapping[str, Generator] = {
    "abandoned_carts": abandoned_carts.GENERATOR,
    "account_balances": account_balances.GENERATOR,
    "ad_attribution": ad_attribution.GENERATOR,
    "ad_campaigns": ad_campaigns.GENERATOR,
    "card_limits": card_limits.GENERATOR,
    "interval_join": interval_join.GENERATOR,
    "live_campaigns": live_campaigns.GENERATOR,
    "merged_sessions": merged_sessions.GENERATOR,
    "orders_shipped": orders_shipped.GENERATOR,
    "payments": payments.GENERATOR,
    "priced_orders": priced_orders.GENERATOR,
    "scored_payments": scored_payments.GENERATOR,
    "sensor_alarms": sensor_alarms.GENERATOR,
    "sensor_average": sensor_average.GENERATOR,
    "stolen_passwords": stolen_passwords.GENERATOR,
    "visitors_by_country": visitors_by_country.GENERATOR,
    "web_sessions": web_sessions.GENERATOR,
}

__all__ = ["GENERATORS", "Generator", "Load", "Record"]
