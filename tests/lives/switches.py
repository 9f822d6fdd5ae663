"""What a life may be lived without, to see what the rest finds; what is not lived yet is off, with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lives.events.foreign import DEEDS, MILD, NAMES

DRAWN = frozenset(
    {
        "hostile names",
        "exact decimals",
        "exact statistics",
        "power cuts",
        "backups",
        "joins",
        "rates",
        "copies",
        "topics",
        "sources",
        "versions",
    }
)
"""What a life is drawn with beside other people's deeds."""
OFF: Mapping[str, str] = {}
"""By switch why: each is switched on once what it found is mended and lives have shown it."""
ON = DRAWN | {
    switch
    for name in NAMES
    for deed in DEEDS
    if deed not in MILD and (switch := f"foreign {deed} of {name}") not in OFF
}
