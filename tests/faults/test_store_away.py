"""A store that is away for minutes under a live stream: it is waited for like a broker, and no record is blamed.

`--away 10` says for how many minutes. The server is versitygw, which `make services` builds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.rig.line import Line
from tests.faults.rig.store_proxy import StoreProxy, Trouble
from tests.faults.rig.store_settings import set_store
from tests.faults.rig.trial import Trial, eventually
from tests.services.addresses import Bucket

from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.supervisor_heartbeat import Heartbeat

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
UNDER_WAY = 10.0
"""Seconds in which what was under way at the beginning may still land."""
SILENT = 20.0
"""Seconds for which a request is kept without an answer."""
BACK_WITHIN = 180.0
PER_SECOND = 50


@pytest.fixture
def line(
    kafka: KafkaConnection,
    bucket: Bucket,
    proxy: StoreProxy,
    tmp_path: Path,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Line]:
    """A supervised stream that has begun; the proxy is between the store and all of it, but not the test."""
    settings = {**set_store(monkeypatch, bucket, bucket.endpoint, tmp_path), "AWS_ENDPOINT_URL": proxy.url}
    made = Line(tmp_path, kafka, seed, limit=5000, env=settings)
    made.send(300)
    made.supervise()
    made.await_beyond(-1)
    with made.reader:
        yield made
        made.close()


def watch_away(line: Line, seconds: float) -> list[Heartbeat]:
    """Let a store be away for so long; return what the supervisor said of itself meanwhile."""
    until, said = time.monotonic() + seconds, []
    while time.monotonic() < until:
        if beat := line.heartbeat():
            said.append(beat)
        time.sleep(1.0)
    return said


def test_a_store_that_is_away_is_waited_for_like_a_broker(
    line: Line, proxy: StoreProxy, trial: Trial, pytestconfig: pytest.Config
) -> None:
    """First it says nothing, then it refuses; people do nothing, and the stream goes on where it was."""
    seconds = 60 * float(pytestconfig.getoption("--away"))
    with line.flowing(PER_SECOND):
        line.await_beyond(line.stack.epoch())
        before = line.heartbeat()
        assert before
        proxy.strike(Trouble.STALLED, "", times=10**9, seconds=SILENT, label="says nothing")
        proxy.strike(Trouble.REFUSED, "", times=10**9, label="refuses")
        said = watch_away(line, UNDER_WAY)
        held = line.stack.offsets_read()
        said += watch_away(line, seconds / 2 - UNDER_WAY)
        proxy.forget("says nothing")
        said += watch_away(line, seconds / 2)
        struck = proxy.struck
        for label in ("says nothing", "refuses"):
            trial.prove(f"a store that {label}, {struck[label]} times", struck[label])
        trial.prove(f"nothing read for {seconds:g} s", line.stack.offsets_read() == held)
        sent, epoch = len(line.log), line.stack.epoch()
        proxy.clear()
        trial.measure("back to next committed epoch", line.await_beyond(epoch, BACK_WITHIN))
        began = time.monotonic()
        eventually("what was sent meanwhile", lambda: line.stack.offsets_read() >= sent, BACK_WITHIN)
        last = line.stack.epoch()
        eventually(f"an answer to epoch {last}", lambda: line.reader.samples[-1].epoch >= last, BACK_WITHIN)
        trial.measure("next committed epoch to an answer with all of before", time.monotonic() - began)
    line.drained()
    after = line.heartbeat()
    assert after
    assert {(each.supervisor, each.strikes) for each in (*said, after)} == {(before.supervisor, 0)}
    trial.figures["seconds away"] = seconds
    trial.figures["drivers started meanwhile"] = after.starts - before.starts
    line.stop()
    line.require_clean()
    epochs = line.judge()
    assert not any("kernel error" in epoch.refused for epoch in epochs), "a record was blamed"
