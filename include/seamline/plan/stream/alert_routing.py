"""Which route gets which alert."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.protocol.alert import AlertStatement, Severity

NOTIFIER = "notifier "
"""How the channels of routes are called, before the notifier's name."""


def name_channel(route: AlertRoute) -> str:
    """Name the channel of a route; routes of one notifier share it, so that each alert is sent once."""
    return f"{NOTIFIER}{route.notifier}"


def list_channels(routes: Sequence[AlertRoute], statement: AlertStatement) -> tuple[str, ...]:
    """List the channels by which a statement is sent, each once, in the order of their declaration."""
    return tuple(dict.fromkeys(name_channel(each) for each in routes if is_taken(each, statement)))


def is_taken(route: AlertRoute, statement: AlertStatement) -> bool:
    """Return whether a route gets a statement."""
    rank = [*Severity].index
    enough = rank(statement.kind.severity) >= rank(Severity(route.severity))
    return enough and (not route.alerts or statement.kind in route.alerts)
