"""What can befall Spark's checkpoint, and a look at how far it says the query is."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from seamline.spark.stream.checkpoints import Checkpoints, last


def files(folder: Path) -> list[Path]:
    """List the files of all checkpoints, in order."""
    return sorted(each for each in folder.glob("checkpoint-*/**/*") if each.is_file())


def deleted(folder: Path, _: random.Random) -> None:
    """Take everything away."""
    for each in folder.glob("checkpoint-*"):
        shutil.rmtree(each)


def emptied(folder: Path, _: random.Random) -> None:
    """Take the files away and leave the folders."""
    for each in files(folder):
        each.unlink()


def truncated(folder: Path, chance: random.Random) -> None:
    """Cut every file short, as a full disk or a power cut may; some to nothing."""
    for each in files(folder):
        content = each.read_bytes()
        each.write_bytes(content[: chance.randrange(len(content)) if content else 0])


def unnamed(folder: Path, _: random.Random) -> None:
    """Take away the file that names the query."""
    for each in folder.glob("checkpoint-*/metadata"):
        each.unlink()


def flipped(folder: Path, chance: random.Random) -> None:
    """Turn a bit in every file."""
    for each in files(folder):
        content = bytearray(each.read_bytes())
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(7)
            each.write_bytes(bytes(content))


LOSSES: dict[str, Callable[[Path, random.Random], None]] = {
    "deleted": deleted,
    "emptied": emptied,
    "truncated": truncated,
    "unnamed": unnamed,
    "flipped": flipped,
}


def lose(folder: Path, how: str, chance: random.Random) -> bool:
    """Do one of ``LOSSES``; tell whether the files are others than before."""
    before = {each: each.read_bytes() for each in files(folder)}
    LOSSES[how](folder, chance)
    return before != {each: each.read_bytes() for each in files(folder)}


def restore(folder: Path, kept: Path) -> bool:
    """Put an old copy in the place of what is there; tell whether it is another."""
    before = {each.relative_to(folder): each.read_bytes() for each in files(folder)}
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    return before != {each.relative_to(folder): each.read_bytes() for each in files(folder)}


def batches(folder: Path) -> tuple[int, int]:
    """Return the last batch that Spark has planned and the last that it takes for done, -1 for none."""
    newest = Checkpoints(folder).newest
    if newest is None:
        return -1, -1
    planned, done = last(newest / "offsets"), last(newest / "commits")
    return -1 if planned is None else planned, -1 if done is None else done
