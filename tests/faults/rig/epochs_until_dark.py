"""A live writer of epochs that somebody takes the power from; its arguments are HOME TOKEN END DURABILITY.

It holds epochs of a few records each without end, and says of each, once its commits are there, where the log ends.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.protocol.shipped import PIPELINE, Stream, caught_up

from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline


def days(count: int) -> list[int | None]:
    """Return the topic's first records: the day of each, None for one that is refused."""
    return [Random(at).choice((0, 1, 2, None)) for at in range(count)]


def pipeline(durability: str) -> CompiledPipeline:
    """Return the definition with a setting."""
    stream = replace(PIPELINE.definition.stream, durability=durability)
    return compile_pipeline(replace(PIPELINE.definition, stream=stream))


def main(home: Path, token: int, end: int, durability: str) -> None:
    """Hold epochs until there is no power."""
    stream = Stream(home, pipeline(durability), days(end), token=token - 1)
    writer = stream.start()
    while writer.behind:
        caught_up(writer, setattr)
    chance = Random(token)
    while True:
        stream.topic = days(len(stream.topic) + chance.randint(1, 4))
        stream.epoch(writer, edge=chance.random() < 0.5)
        print(len(stream.topic), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
