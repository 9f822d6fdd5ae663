"""What a scenario runs on: the same few steps, whoever does them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import Interval

RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
"""Raw records as the stream job reads them; ``headers`` is JSON text with the values in base64."""
PHASES = ("planned", "files", "slices", "quarantine", "master", "ledger")
"""The steps of an epoch after which it may be killed, in their order; from ``master`` on it is committed."""


class Engine(Protocol):
    """The two layers of one pipeline. Topic ids are ``id of <name>``."""

    def commit(self, epoch: Epoch, raw: pa.Table, *, dies_after: str = "") -> Epoch | None:
        """Validate raw records and commit them as one epoch; None if it died before the master's commit.

        ``epoch`` has its ranges, its edge and its instant; number, counts, event times are filled in, and the
        watermark by ``watermark(event times)``.
        """
        ...

    def restart(self) -> None:
        """Start again from what is committed, under a new token."""
        ...

    def redefine(self, pipeline: CompiledPipeline) -> None:
        """Start again from what is committed with another definition, which keeps the views and may add some."""
        ...

    def restate(self, lookup: str, span: Interval, reason: str) -> Restatement:
        """Decide that rows of ``span`` are made with a look-up's table as it is; see ``lookup_restating``."""
        ...

    def build(self, asked: Interval | None, run: str) -> list[str]:
        """Plan, build, certify and publish; return the ids of the intervals that were published.

        Without ``asked`` the dirty ones. CertificateFailed for red ones, after the green are published.
        """
        ...

    def ledger(self) -> Sequence[Epoch]:
        """List the epochs that are committed."""
        ...

    def cuts(self) -> dict[tuple[str, str], int]:
        """Return the published cut by view name and interval id."""
        ...

    def answer(self, view: str, side: Side) -> list[dict[str, Any]]:
        """Present a view: keys, window_start, window_end, measures, batch_part, speed_part; any order."""
        ...

    def quarantine(self) -> list[dict[str, Any]]:
        """List committed refused records, by ``_topic``, ``_partition``, ``_offset``, ``_reason``, ``_detail``."""
        ...


def cuts_of(pipeline: CompiledPipeline, manifest: Manifest) -> dict[tuple[str, str], int]:
    """Return the published cuts of the definition's own versions by view name and interval id."""
    own = {view.id: view.name for view in pipeline.views}
    return {
        (own[id], interval): each.epoch for (id, interval), each in manifest.published.items() if id in own
    }
