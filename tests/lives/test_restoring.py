"""Lives that somebody thought of: tables that come back from a backup."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from tests.lives.events import restoring
from tests.lives.events.batching import Build, Publish
from tests.lives.events.faults import Mishap
from tests.lives.events.losing import PassOver
from tests.lives.events.restoring import PLACES, BackUp, BringBack
from tests.lives.events.sending import Close, Send
from tests.lives.events.streaming import Epoch, Idle, Redefine, Serve
from tests.lives.lives import Life, lived
from tests.lives.test_versions import shape_of

from seamline.model.definition.windows import Tumbling


@pytest.mark.parametrize(
    ("tables", "accepted"),
    [
        (("master",), True),
        (("ledger", "quarantine", "slices"), False),
        (("control", "serving"), False),
        (tuple(PLACES), False),
    ],
    ids=["the log", "what follows it", "beside it", "everything"],
)
def test_tables_come_back_from_a_backup(tables: tuple[str, ...], accepted: bool) -> None:
    """A start is right or refused; where it is refused, a person lets the master stand, and life goes on."""
    back = BringBack(
        tables, boots=False, looks=True, meanwhile=0, at=1, mishap=Mishap.DIES_AFTER, sent=Send(7, 3, 1)
    )
    steps = [
        Send(9, 12, 0), Epoch(40), Serve(), BackUp(), Close(1, 2), Send(4, 12, 1), Epoch(40), Idle(3),
        Build(-1, ""), Publish(0, ""), Serve(), Send(5, 12, 2), Epoch(40), back, Send(6, 12, 1), Epoch(40), Serve(),
    ]  # fmt: skip
    with patch.object(restoring, "repair_pipeline", wraps=restoring.repair_pipeline) as repaired:
        failure = lived(Life(1, shape_of(Tumbling("1 hour")), tuple(enumerate(steps))))
    assert failure is None, str(failure)
    assert bool(repaired.call_count) is accepted


def test_what_was_passed_over_is_not_before_what_a_restored_master_has_read() -> None:
    """The master knows of no record of the lane, and the control table of a gap further on: the first ones are read."""
    back = BringBack(
        ("ledger", "master", "quarantine"),
        boots=False, looks=False, meanwhile=0, at=-1, mishap=Mishap.DIES_AFTER, sent=Send(7, 3, 1),
    )  # fmt: skip
    steps = [Redefine(0), BackUp(), Send(9, 12, 0), Epoch(4), PassOver(0, 3), back, Epoch(40)]
    failure = lived(Life(1, shape_of(Tumbling("1 hour")), tuple(enumerate(steps))))
    assert failure is None, str(failure)


def test_who_looks_before_a_start_takes_epochs_out_of_the_master_is_right_after() -> None:
    """The quarantine comes back without what the master relies on, and so does the ledger: nobody else tells of it."""
    back = BringBack(
        ("ledger", "quarantine"),
        boots=False, looks=True, meanwhile=0, at=-1, mishap=Mishap.DIES_AFTER, sent=Send(7, 3, 1),
    )  # fmt: skip
    steps = [Send(9, 12, 0), Epoch(40), back, Send(6, 3, 1), Epoch(40)]
    failure = lived(Life(1, shape_of(Tumbling("1 hour")), tuple(enumerate(steps))))
    assert failure is None, str(failure)
