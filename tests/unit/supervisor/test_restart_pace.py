"""How long a supervisor waits for what only a person can remedy."""

from __future__ import annotations

import pytest

from seamline.model.definition.restarts import ExponentialDelay, Failures
from seamline.model.errors import KafkaRefused, KafkaUnavailable, SeamlineError, TopicMissing
from seamline.supervisor.restart_pace import Restarts


@pytest.mark.parametrize(
    ("error", "waits"), [(KafkaRefused, True), (TopicMissing, True), (KafkaUnavailable, False)]
)
def test_what_only_a_person_can_remedy_is_tried_seldom(error: type[SeamlineError], waits: bool) -> None:
    """A topic that one may not see looks like one that is not there, and is waited for in the same way."""
    policy = ExponentialDelay()
    rarely = policy.find_pause(Failures(1, [0.0], True))
    pause = Restarts(lambda: policy).find_pause(error.exit_code, row=1, now=0.0)
    assert pause is not None and (pause == rarely) is waits
