"""Records that are small on the broker and hundreds of megabytes once they are decompressed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from kafka import KafkaProducer
from tests.faults.rig.line import Line
from tests.faults.rig.oracle import require_ledger
from tests.faults.rig.trial import Trial

RECORDS, BYTES = 14, 80_000_000
PATIENCE = 700.0
TAKES = {"max.message.bytes": "90000000"}
"""Of a topic: snappy makes 52 MB of the batch, lz4 and gzip a few, zstd less than one."""


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_decompresses_to_more_than_the_driver_has(
    lines: Callable[..., Line], trial: Trial, codec: str
) -> None:
    """Fourteen records of 80 MB in one batch, and a heap of 1 GB: each is refused, and the stream goes on."""
    line = lines(trial.seed, config=TAKES)
    file = line.home / "pipelines" / f"{line.stack.name}.py"
    file.write_text(file.read_text().replace("edge_epochs=5", 'edge_epochs=5, memory="1g"'))
    line.send(50)
    out = KafkaProducer(
        **line.kafka.for_client(),
        compression_type=codec,
        max_request_size=(1 << 31) - 1,
        batch_size=(1 << 31) - 1,
        linger_ms=120_000,
        request_timeout_ms=300_000,
        delivery_timeout_ms=900_000,
    )
    for number in range(RECORDS):
        head = b'{"producer": "huge", "seq": %d, "at": "2024-01-05T00:00:00Z", "more": "' % number
        out.send(line.topic, value=head + b"0" * BYTES + b'"}', partition=0)
    out.flush()
    out.close()
    line.send(50)
    line.supervise()
    line.drained(PATIENCE)
    line.stop()
    epochs = require_ledger(line.stack.layout)
    reasons = sum((Counter(epoch.refused) for epoch in epochs), Counter())
    huge = reasons["record too large"] + reasons["kernel error"]
    trial.prove(f"{dict(reasons)}, tokens to {epochs[-1].token}", huge == RECORDS)
    accepted = sum(sum(epoch.accepted.values()) for epoch in epochs)
    assert accepted == sum(sent.good for sent in line.log.values())
