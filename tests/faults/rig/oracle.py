"""What must hold whatever has happened: said in plain Python about what was sent, and asked of the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable
from tests.faults.rig.workload import Log, Place, Sent

from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import OffsetRange

PLACE = ["_topic_id", "_partition", "_offset"]
Row = tuple[int, int, int, int]
"""n, total, low, high."""
Rows = dict[tuple[str, datetime], Row]
"""An answer of the view: its rows by producer and start of the hour."""


@dataclass(frozen=True)
class Sample:
    """One answer as a reader saw it, right up to ``epoch``."""

    epoch: int
    rows: Rows

    @classmethod
    def of(cls, epoch: int, table: pa.Table) -> Sample:
        """Read an answer's table, in which every row must be of the same epoch as the others."""
        found = table.select(["producer", "window_start", "n", "total", "low", "high", "epoch"]).to_pylist()
        epochs = {row["epoch"] for row in found}
        assert len(epochs) <= 1, f"one answer counts to different epochs: {epochs}"
        rows = {
            (row["producer"], row["window_start"]): (row["n"], row["total"], row["low"], row["high"])
            for row in found
        }
        assert len(rows) == len(found), "a key and window has two rows"
        return cls(max(epochs, default=epoch), rows)


def stored(layout: Layout, table: str) -> Counter[Place]:
    """Count the coordinates that a table holds; what dead epochs have left there is not held (rule 2)."""
    held = {epoch.number for epoch in known_epochs(layout)}
    rows = DeltaTable(str(layout.table(table))).to_pyarrow_table(columns=[*PLACE, "_epoch"]).to_pylist()
    return Counter(tuple(row[name] for name in PLACE) for row in rows if row["_epoch"] in held)


def require_whole(
    layout: Layout, log: Log, *, lost: Iterable[OffsetRange] = (), unbroken: bool = True
) -> None:
    """Master + quarantine = the log, each record once and in the right one of the two; ``lost`` are the holes.

    With ``unbroken`` each producer's sequence goes on by exactly one, from record to record.
    """
    gone = {
        (part.lane.topic_id, part.lane.partition, at) for part in lost for at in range(part.start, part.end)
    }
    for table, good in (("master", True), ("quarantine", False)):
        found = stored(layout, table)
        wanted = Counter(place for place, sent in log.items() if sent.good is good and place not in gone)
        missing, extra = wanted - found, found - wanted
        assert not missing and not extra, (
            f"{table}: {missing.total()} missing {sorted(missing)[:5]}, {extra.total()} too many {sorted(extra)[:5]}"
        )
    read = {producer: iter(numbers) for producer, numbers in sequences(layout).items()}
    short = {(place[0], log[place].producer) for place in gone if place in log}
    for place in sorted(log):
        sent = log[place]
        if sent.good and place not in gone:
            assert next(read[place[0], sent.producer]) == sent.sequence, f"{place} is not in its turn"
    assert all(next(numbers, None) is None for numbers in read.values())
    for producer, numbers in sequences(layout).items():
        if unbroken and producer not in short:
            assert numbers == list(range(len(numbers))), f"{producer} goes on by more than one"


def sequences(layout: Layout) -> dict[tuple[str, str], list[int]]:
    """Return every producer's numbers, by topic, in the order in which epochs took them in."""
    columns = [*PLACE, "producer", "seq", "_epoch"]
    rows = DeltaTable(str(layout.table("master"))).to_pyarrow_table(columns=columns).to_pylist()
    rows.sort(key=lambda row: (row["_epoch"], row["_topic_id"], row["_partition"], row["_offset"]))
    found: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        found.setdefault((row["_topic_id"], row["producer"]), []).append(row["seq"])
    return found


def require_ledger(layout: Layout) -> list[Epoch]:
    """Numbers rise, tokens never fall, ranges join, and the counts are those of the tables; give the epochs."""
    epochs = list(known_epochs(layout))
    numbers, tokens = [each.number for each in epochs], [each.token for each in epochs]
    assert numbers == sorted(set(numbers)), "an epoch number was given twice"
    assert tokens == sorted(tokens), "an older token committed after a newer one"
    ends: dict[object, int] = {}
    for epoch in epochs:
        for part in epoch.ranges:
            assert part.start == ends.get(part.lane, part.start), (
                f"epoch {epoch.number} does not join: {part}"
            )
            ends[part.lane] = part.end
    assert numbers[-1] == Master.open(layout).epoch
    assert sum(each.rows for each in epochs) == stored(layout, "master").total()
    assert sum(sum(each.refused.values()) for each in epochs) == stored(layout, "quarantine").total()
    return epochs


def replayed(log: Log, epochs: Sequence[Epoch], wanted: set[int]) -> dict[int, Rows]:
    """Fold the good records that each of the ``wanted`` epochs and those before it have read."""
    rows: Rows = {}
    found: dict[int, Rows] = {}
    for epoch in epochs:
        for part in epoch.ranges if epoch.kind is EpochKind.READ else ():
            for offset in range(part.start, part.end):
                sent = log.get((part.lane.topic_id, part.lane.partition, offset))
                if sent is not None and sent.good:
                    fold(rows, sent)
        if epoch.number in wanted:
            found[epoch.number] = dict(rows)
    return found


def fold(rows: Rows, sent: Sent) -> None:
    """Count one record."""
    assert sent.at is not None
    place = (sent.producer, sent.at.replace(minute=0, second=0, microsecond=0))
    n, total, low, high = rows.get(place, (0, 0, sent.sequence, sent.sequence))
    rows[place] = (n + 1, total + sent.sequence, min(low, sent.sequence), max(high, sent.sequence))


def require_replay(log: Log, epochs: Sequence[Epoch], samples: Sequence[Sample]) -> None:
    """Every sampled answer is the plain replay of the log at the epoch it states."""
    wanted = replayed(log, epochs, {each.epoch for each in samples})
    for sample in samples:
        if sample.epoch < 0:
            assert not sample.rows
            continue
        assert sample.epoch in wanted, f"an answer states epoch {sample.epoch}, which was never held"
        assert sample.rows == wanted[sample.epoch], f"epoch {sample.epoch}: {difference(sample, wanted)}"


def difference(sample: Sample, wanted: Mapping[int, Rows]) -> str:
    """Say where an answer is not the replay."""
    right = wanted[sample.epoch]
    places = [place for place in {*right, *sample.rows} if right.get(place) != sample.rows.get(place)]
    return "; ".join(f"{at}: {sample.rows.get(at)}, replay {right.get(at)}" for at in sorted(places)[:5])


def require_rising(samples: Sequence[Sample]) -> None:
    """Nothing that one reader saw goes back: no epoch, no count, no bound, no row that vanishes."""
    for before, after in zip(samples, samples[1:], strict=False):
        assert after.epoch >= before.epoch, f"a reader went from epoch {before.epoch} to {after.epoch}"
        for place, (n, total, low, high) in before.rows.items():
            now = after.rows.get(place)
            assert now is not None, f"a reader lost {place}"
            assert now[0] >= n and now[1] >= total and now[2] <= low and now[3] >= high, f"{place} went back"
