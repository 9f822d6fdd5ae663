"""The fencing tokens that a pipeline's tables carry, whatever its control table remembers of them."""

from __future__ import annotations

from deltalake.exceptions import DeltaError

from seamline.lake.storage import log_wholeness
from seamline.lake.storage.commit_conflicts import TOKEN
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location, list_places
from seamline.model.errors import NotFound, NotWhole

FENCED = ("master", "quarantine", "ledger", "views/*/*/slices")
"""Where the tables are that a driver takes over, below a pipeline's folder."""


def newest_token(folder: Location) -> int:
    """Return the newest token that a table of a pipeline carries, 0 if none does.

    A table that cannot be opened is left out: no driver can take it over, either.
    """
    return max((token_of(root) for place in FENCED for root in list_places(folder, place)), default=0)


def token_of(root: Location) -> int:
    """Return a table's token, also where others have changed its rows."""
    try:
        return Table(root, *log_wholeness.open_whole_table(root)).txn(TOKEN) or 0
    except (NotFound, NotWhole, DeltaError):
        return 0
