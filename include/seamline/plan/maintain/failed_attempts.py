"""Which attempts at reprocessing came to nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping


def dead_attempts(
    epochs: Mapping[str, Collection[int]],
    verdicts: Mapping[int, str],
    lost: Callable[[int], bool] = lambda _: False,
) -> set[str]:
    """Name the attempts whose rows can never count, by the epochs of each and whose verdict an epoch has.

    The verdicts of an attempt are one commit, refused if one of its epochs has a verdict, or is ``lost``. One that has
    them is not dead, whatever else is said of its epochs. One that has none yet may still run, or sleep: that nobody
    has heard of it for a week says nothing.
    """
    done = {*verdicts.values()}
    return {
        attempt
        for attempt, numbers in epochs.items()
        if attempt not in done
        and any(lost(number) or verdicts.get(number, attempt) != attempt for number in numbers)
    }
