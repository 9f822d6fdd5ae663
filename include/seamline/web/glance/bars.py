"""Bars of the page of all pipelines, which are drawn once for as long as they stay the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from markupsafe import Markup

from seamline.serve.trust.interval_shades import SIGNS, Shade

DRAWN = 4_096
"""Bars that are remembered."""
HEIGHT, WIDTH, LEAST = 20, 100, 1.5
"""How high the highest is, how wide all are together, and how wide each is at least."""


@lru_cache(DRAWN)
def draw_row_bars(rows: Sequence[int]) -> str:
    """Draw a bar 1 wide for each number, as an SVG path; neighbours of one height as one."""
    most, path, before = max(rows), f"M0 {HEIGHT}", float(HEIGHT)
    for at, each in enumerate(rows):
        top = round(HEIGHT - HEIGHT * each / most, 1)
        if top != before:
            path += f"H{at}V{top:g}"
            before = top
    return f"{path}H{len(rows)}V{HEIGHT}z"


def draw_shade_bars(shades: Mapping[Shade, int]) -> Markup:
    """Draw how many intervals are in each state, side by side; empty for none."""
    return draw_counts(tuple((shade, shades[shade]) for shade in SIGNS if shades.get(shade)))


@lru_cache(DRAWN)
def draw_counts(counts: tuple[tuple[Shade, int], ...]) -> Markup:
    """Draw the counts, which are no zeros."""
    total, at, drawn = sum(number for _, number in counts), 0.0, ""
    for shade, number in counts:
        wide = WIDTH * number / total
        name = shade.value.replace(" ", "-")
        drawn += f'<rect class="{name}" x="{at:.4g}" width="{max(wide, LEAST):.4g}" height="10"/>'
        at += wide
    said = ", ".join(f"{number:,} {shade.value}" for shade, number in counts)
    svg = f'<svg class="bar" viewBox="0 0 {WIDTH} 10" preserveAspectRatio="none" role="img" aria-label="{said}">'
    return Markup(f"{svg}{drawn}</svg>" if counts else "")
