"""A warehouse in a bucket whose store and network do what they can: nothing is lost, twice, or blamed on a record.

Seeds: `--seed N`. The server is versitygw, which `make services` builds; what befalls requests is the proxy's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.faults.rig.oracle import require_ledger, require_replay, require_rising, require_whole
from tests.faults.rig.processes import end_all, require_none
from tests.faults.rig.reader import Reader
from tests.faults.rig.store_proxy import StoreProxy, Trouble
from tests.faults.rig.store_settings import set_store
from tests.faults.rig.trial import Trial, eventually
from tests.faults.rig.workload import Log, Workload, definition, send
from tests.services.addresses import Bucket

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.epoch_log import known_epochs
from seamline.local.stack import StreamStack
from seamline.model.errors import FenceLost, SetupError
from seamline.model.protocol.epoch import EpochKind

pytestmark = pytest.mark.faults
METHODS = {Trouble.CONFLICT: "PUT", Trouble.TRUNCATED: "GET"}
"""What a trouble is of: no store says of a request that reads that another is in its way."""
TABLES = ("master", "slices", "quarantine", "ledger")
PATIENCE = 600
LEAST, MOST = 6, 30
"""How often something is sent: until every trouble has struck."""


@contextmanager
def striking(trial: Trial, proxy: StoreProxy, every: float = 0.7) -> Iterator[None]:
    """Have something befall a request to one of the tables, again and again; by turns, so that all of it does."""
    halt = threading.Event()

    def strike() -> None:
        number = 0
        while not halt.wait(every):
            table = TABLES[number % len(TABLES)]
            trouble = [*Trouble][number // len(TABLES) % len(Trouble)]
            kind = trial.chance.choice(["_delta_log/", "parquet"])
            # What was meant for requests that nobody sent is forgotten: troubles do not pile up while a driver starts.
            proxy.forget()
            proxy.strike(
                trouble,
                f"/{table}/.*{kind}",
                method=METHODS.get(trouble, ".*"),
                times=trial.chance.choice([1, 1, 1, 3]),
                seconds=trial.chance.uniform(0.1, 5.0),
            )
            number += 1

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    try:
        yield
    finally:
        halt.set()
        thread.join()
        proxy.clear()


def drain_with_restarts(stack: StreamStack, offsets: int) -> int:
    """Wait until so much is read, and start a driver that the store was too bad for again; return how often.

    A fence is lost to another writer, and there is none.
    """
    for restarts in count():
        try:
            stack.drain(offsets, timeout=PATIENCE)
        except SetupError as ended:
            if stack.driver is None or stack.driver.poll() in (None, FenceLost.exit_code):
                raise AssertionError("the driver is stuck, or lost its fence to nobody") from ended
            stack.start()
        else:
            return restarts
    raise AssertionError("count() does not end")


@pytest.mark.seeds(4)
def test_a_stream_in_a_shaky_bucket_counts_each_record_once(
    seed: int,
    trial: Trial,
    bucket: Bucket,
    proxy: StoreProxy,
    kafka: KafkaConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While every kind of trouble befalls its tables, and a reader asks; and again after it was killed."""
    log, work = Log(), Workload(seed)
    settings = {**set_store(monkeypatch, bucket, bucket.endpoint, tmp_path), "AWS_ENDPOINT_URL": proxy.url}
    topic = f"faults.bucket{seed}"
    with TopicAdmin(kafka) as admin:
        admin.create_topic(topic, 3)
        topic_id = admin.topic_id(topic)
    restarts = 0
    stack = StreamStack(tmp_path, definition("points", topic), kafka, "points", env=settings)
    try:
        with Reader("points.by_producer", stack.layout.warehouse, stack.home / "pipelines") as reader:
            with striking(trial, proxy):
                stack.start()
                for done in range(MOST):
                    if done >= LEAST and all(proxy.struck[each] for each in Trouble):
                        break
                    send(kafka, topic, topic_id, work, 600, log)
                    restarts += drain_with_restarts(stack, len(log))
                stack.kill()
                send(kafka, topic, topic_id, work, 600, log)
                stack.start()
                restarts += drain_with_restarts(stack, len(log))
            # A view whose slices did not land is behind, and catches up between epochs.
            eventually("views that have caught up", lambda: not stack.heartbeat()["behind"])
            assert stack.stop() == 0, stack.log.read_text(errors="replace")[-4000:]
            last = stack.epoch()
            eventually(f"an answer to epoch {last}", lambda: reader.samples[-1].epoch >= last)
        struck = proxy.struck
        for trouble in Trouble:
            trial.prove(f"{trouble}, {struck[trouble]} times", struck[trouble])
        require_whole(stack.layout, log)
        epochs = require_ledger(stack.layout)
        require_rising(reader.samples)
        require_replay(log, epochs, reader.samples)
        trial.figures["restarts"] = restarts
        assert all(epoch.kind is EpochKind.READ for epoch in known_epochs(stack.layout))
        assert not any("kernel error" in epoch.refused for epoch in epochs), "a record was blamed"
    finally:
        end_all(tmp_path)
        require_none(tmp_path)
