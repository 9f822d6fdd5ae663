"""Hands events to the official client; whatever goes wrong with that is logged once, and never raised."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from seamline.plan.lineage.lineage_events import LineageEvent, spell_error

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

log = logging.getLogger("seamline.lineage")
MISSING = "OpenLineage is configured, but its client is not installed: pip install 'seamline[lineage]'."
RETRIES = logging.getLogger("urllib3.connectionpool")


class Courier:
    """The client, made when the first event is due: importing it takes a third of a second."""

    def __init__(self) -> None:
        self.client: OpenLineageClient | None = None
        self.refused = 0
        """Attempts in vain since the last event that was taken."""

    def deliver(self, event: LineageEvent) -> bool:
        """Send an event within the time-outs of the client's settings; return whether it was taken."""
        try:
            client = self.open()
            from seamline.lineage.client_events import make_client_event

            client.emit(make_client_event(event))
        except Exception as error:  # noqa: BLE001 - lineage is in the way of no stream and no build
            self.note_failure(MISSING if isinstance(error, ImportError) else spell_error(error))
            return False
        if self.refused:
            log.info("Lineage is told again, after %s attempts.", self.refused)
            self.refused = 0
        return True

    def open(self) -> OpenLineageClient:
        """Return the client, as its settings say."""
        if self.client is None:
            from openlineage.client import OpenLineageClient

            RETRIES.addFilter(OtherThreads())
            self.client = OpenLineageClient()
        return self.client

    def close(self, timeout: float) -> None:
        """Let a client that sends from a thread of its own send what it has, within so many seconds."""
        if self.client is not None:
            self.client.close(timeout)

    def note_failure(self, said: str) -> None:
        """Count an attempt in vain; the first is logged."""
        self.refused += 1
        if self.refused == 1:
            log.warning("Lineage is not told, and is tried again: %s", said)


class OtherThreads(logging.Filter):
    """Leaves out what the HTTP client says of each retry in this thread."""

    def __init__(self) -> None:
        super().__init__()
        self.own = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether another thread says it, or it is an error."""
        return record.thread != self.own or record.levelno >= logging.ERROR
