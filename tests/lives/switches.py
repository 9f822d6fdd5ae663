"""What is not lived yet, and why: each is switched on once what it found is mended and lives have shown it."""

from __future__ import annotations

from tests.lives.foreign import DEEDS, MILD, NAMES

MENDED = "mended, and not lived for long since"
OFF = {
    "hostile names": MENDED,
    "exact decimals": MENDED,
    "exact statistics": MENDED,
    "power cuts": MENDED,
    **{f"foreign {deed} of control": MENDED for deed in DEEDS if deed not in MILD},
    **{
        f"foreign add column of {name}": "nothing says yet what it does"
        for name in NAMES
        if name != "control"
    },
}
ON = frozenset(
    f"foreign {deed} of {name}"
    for name in NAMES
    for deed in DEEDS
    if deed not in MILD and f"foreign {deed} of {name}" not in OFF
)
