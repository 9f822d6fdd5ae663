"""What is not lived yet, and why: each is switched on once what it found is mended and lives have shown it."""

from __future__ import annotations

from tests.lives.foreign import DEEDS, MILD, NAMES

DRAWN = frozenset({"hostile names", "exact decimals", "exact statistics", "power cuts"})
"""What a life is drawn with beside other people's deeds."""
OFF = {f"foreign add column of {name}": "nothing says yet what it does" for name in NAMES}
ON = DRAWN | {
    switch
    for name in NAMES
    for deed in DEEDS
    if deed not in MILD and (switch := f"foreign {deed} of {name}") not in OFF
}
