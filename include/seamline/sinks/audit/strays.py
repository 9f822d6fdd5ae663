"""What a target holds of a range that is not served: it is deleted before the range is sent again."""

from __future__ import annotations

import logging

from seamline.lake.read.sinks.row_comparison import open_comparison
from seamline.lake.read.sinks.shown_rows import ShownRows
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.readable_target import DeletingTarget
from seamline.sinks.target import Target

log = logging.getLogger("seamline.sinks")


def delete_strays(target: Target, shown: ShownRows, position: SinkPosition) -> None:
    """Delete what a target holds in a range and a version does not show; nothing where it cannot do that."""
    if not isinstance(target, DeletingTarget):
        log.info(
            "What is there and is not served stays: this kind of target cannot be told by what it holds."
        )
        return
    with open_comparison(shown.span) as comparison:
        with target.open_reading() as reading:
            for held in reading.read_rows(shown.span):
                comparison.add_held(held)
        for rows, sent in shown.iterate_all():
            comparison.add_wanted(target.spell_places(rows), target.spell_values(rows), sent)
        for strays in comparison.iterate_strays():
            target.delete_held(strays, position)
