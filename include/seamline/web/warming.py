"""What the first page of a process would load, loaded before somebody asks for it."""

from __future__ import annotations

import logging
import threading

log = logging.getLogger(__name__)


def begin_warming() -> threading.Thread:
    """Begin to load the pages and the definitions, in a thread that nobody waits for."""
    thread = threading.Thread(target=load_pages, name="seamline-pages", daemon=True)
    thread.start()
    return thread


def load_pages() -> None:
    """Load what every page needs; what fails is tried again, and said, by the first page."""
    try:
        from seamline.lake.storage.layout import definitions_folder
        from seamline.model.compile.catalog import load_cached_catalog
        from seamline.web import app  # noqa: F401 - it is to be there

        load_cached_catalog(definitions_folder())
    except Exception as error:  # noqa: BLE001 - the API server has more to do than our pages
        log.info("Seamline's pages are not loaded yet: %s: %s", type(error).__name__, error)
