"""What is said in a login, kept out of kafka-python's logs at DEBUG."""

from __future__ import annotations

import logging

OF_THE_WIRE = logging.getLogger("kafka.protocol.parser")
"""Says each byte that is sent, and with them the password or token."""
OF_REQUESTS = logging.getLogger("kafka.net.connection")


def is_harmless(record: logging.LogRecord) -> bool:
    """Return whether a line of a log shows nothing of a login."""
    if record.levelno > logging.DEBUG:
        return True
    return "Send: " not in str(record.msg) and not any(
        type(each).__name__.startswith("Sasl") for each in record.args or ()
    )


def hush_logins() -> None:
    """Leave out what kafka-python would log of logins in this process; a second time does nothing."""
    for each in (OF_THE_WIRE, OF_REQUESTS):
        if is_harmless not in each.filters:
            each.addFilter(is_harmless)
