"""Bars of the page of all pipelines: heights by the highest, widths by share, and words for who cannot see them."""

from __future__ import annotations

from seamline.serve.trust.interval_shades import Shade
from seamline.web.glance.bars import draw_row_bars, draw_shade_bars


def test_neighbours_of_one_height_are_one_step() -> None:
    """The highest is 20 high; none is 0."""
    assert draw_row_bars((4, 4, 0, 1)) == "M0 20H0V0H2V20H3V15H4V20z"


def test_states_lie_side_by_side_and_few_can_be_seen() -> None:
    """In the order of the legend, not in that of the counts; what there is none of is not said."""
    drawn = draw_shade_bars({Shade.NEVER: 1, Shade.CERTIFIED: 999, Shade.DIRTY: 0})
    assert drawn.index('class="certified" x="0" width="99.9"') < drawn.index(
        'class="never-built" x="99.9" width="1.5"'
    )
    assert 'aria-label="999 certified, 1 never built"' in drawn and "dirty" not in drawn
    assert draw_shade_bars({Shade.DIRTY: 0}) == ""
