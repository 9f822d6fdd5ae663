"""What is not lived yet, and why: each is switched on by default when what it finds has been mended."""

from __future__ import annotations

from tests.lives.foreign import DEEDS, MILD, NAMES

OFF = {
    "hostile names": "a view breaks where a key is named as a parameter of ours (s, i)",
    "exact decimals": "a DECIMAL of JSON goes through a double",
    "exact statistics": "bounds of decimals are written as doubles, and a filter on one finds no row",
    "power cuts": "a start does not repair what a power cut left",
    **{
        f"foreign {deed} of control": "decisions are in the newest commit alone"
        for deed in DEEDS
        if deed not in MILD
    },
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
