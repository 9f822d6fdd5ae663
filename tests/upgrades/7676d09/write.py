"""Write a warehouse by revision 7676d09, and what that revision answers from it.

In a checkout of 7676d09, with its package and its tests on PYTHONPATH:

    python PATH/tests/upgrades/7676d09/write.py PATH/tests/upgrades/7676d09

A stream with a dead epoch, refused records and a hole; days that are published, dirty, rolled back and not built;
a view whose later version is served, and an earlier one that still gets slices.
"""

import json
import sys
import tarfile
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from seamline.kernel.judging import KernelResult
from seamline.lake.flipping import flip_view
from seamline.lake.history import rolled_back
from seamline.lake.publishing import publish_run
from seamline.lake.reads import answer
from seamline.model.compiled import compile_pipeline
from seamline.model.epoch import Epoch, Kind
from seamline.model.intervals import Interval
from seamline.model.offsets import OffsetRange
from seamline.model.seam import Side
from seamline.model.windows import Tumbling
from tests.protocol import shipped
from tests.protocol.shipped import DAY, LANE, PIPELINE, START, Stream

from seamline.model.definition import View
from seamline.model.errors import SeamlineError
from seamline.model.measures import count
from seamline.plan.publish import Decision

LATER = compile_pipeline(
    replace(
        PIPELINE.definition,
        views=[
            View("by_record", keys=["id"], window=Tumbling("1 day"), measures={"n": count(), "m": count()})
        ],
    )
)


def write(home):
    """Live the stream's life."""
    stream = Stream(home)
    writer = stream.start()
    stream.produce(0, 0, 1, None)
    stream.epoch(writer)
    stream.produce(0, 1, 2)
    stream.epoch(writer)
    stream.produce(2)
    stream.epoch(writer, dies_after="slices")
    writer = stream.start()
    cut = stream.epoch(writer).number
    for day, run in ((0, "g1"), (1, "g2")):
        stream.build(day, cut, run)
        publish_run(PIPELINE, stream.layout, run)
    stream.produce(0, 1)
    cut = stream.epoch(writer).number
    stream.build(0, cut, "g3")
    publish_run(PIPELINE, stream.layout, "g3")
    rolled_back(
        PIPELINE,
        stream.layout,
        "by_record",
        Interval(START, START + DAY),
        to="g1",
        decision=Decision("ada", "g3 is doubted", rollback=True),
    )
    pass_over(stream, writer, 2)
    stream.produce(3)
    stream.epoch(writer)
    stream.pipeline = LATER
    writer = stream.start()
    shipped.VIEW = LATER.views[0]
    stream.produce(1, 4, None)
    cut = stream.epoch(writer).number
    for day in range(5):
        stream.build(day, cut, f"later{day}")
        publish_run(LATER, stream.layout, f"later{day}")
    flip_view(LATER, stream.layout, "by_record")
    stream.produce(4, 2)
    stream.epoch(writer)
    return stream


def pass_over(stream, writer, offsets):
    """Register so many offsets as lost before they were read."""
    start = stream.position(writer)
    stream.produce(*[None] * offsets)
    epoch = Epoch(
        writer.take(),
        writer.token,
        START + timedelta(seconds=1),
        PIPELINE.record_version,
        kind=Kind.HOLE,
        edge=True,
        ranges=(OffsetRange(LANE, start, start + offsets),),
        reason="accepted by ada",
    )
    writer.commit(epoch, KernelResult(), writer.current)


def answers(stream):
    """Ask every version and layer, now and as of each epoch that can be asked."""
    found = []
    for view in (PIPELINE.views[0], LATER.views[0]):
        for side in Side:
            for as_of in (None, 1, 4):
                asked = {"version": view.fingerprint, "side": side.value, "as_of": as_of}
                try:
                    told = answer(LATER, LATER.views[0], stream.layout, **{**asked, "side": side})
                except SeamlineError as problem:
                    found.append({**asked, "error": type(problem).__name__})
                    continue
                found.append(
                    {
                        **asked,
                        "rows": [
                            {name: str(value) for name, value in row.items()}
                            for row in told.table.sort_by(
                                [("window_start", "ascending"), ("id", "ascending")]
                            ).to_pylist()
                        ],
                        "intervals": {id: each.status.value for id, each in sorted(told.intervals.items())},
                        "complete_to": told.complete_to,
                    }
                )
    return found


def owned_by_nobody(entry):
    """Leave out who wrote it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main(folder):
    """Write the archive and the answers."""
    with tempfile.TemporaryDirectory() as home:
        stream = write(Path(home))
        told = answers(stream)
        with tarfile.open(folder / "warehouse.tar.gz", "w:gz") as archive:
            for path in sorted(Path(home).rglob("*")):
                if path.is_file():
                    archive.add(path, path.relative_to(home), filter=owned_by_nobody)
    (folder / "answers.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
