"""Kill sinks a hundred times between rows and position: ``python -m tests.faults.sinks.drill``.

    python -m tests.faults.sinks.drill [--targets files,dead_letters] [--kills 100] [--shard 1/4] [--fresh]

Lives of 10 kills each, by seed; those that have passed are in .seamline/faults/sinks.jsonl with their revision, and are
not lived again. Prints how many kills there were, by target and commit point.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.faults.rig.trial import Results
from tests.faults.sinks.drilled import BETWEEN, Drilled
from tests.faults.sinks.file_place import FilesPlace
from tests.faults.sinks.forked import Forking, forking
from tests.faults.sinks.letter_shop import KINDS as LETTERS
from tests.faults.sinks.letter_shop import LetterShop, LettersPlace
from tests.faults.sinks.places import KeysPlace, Place, TablePlace, TopicPlace
from tests.faults.sinks.shown_shop import ShownShop
from tests.lives.lives import revision
from tests.services.addresses import KafkaConnection, Postgres
from tests.services.postgres import drop_database, make_database
from tests.services.run import Run
from tests.services.valkey import give_database

KEPT = Results(Path(".seamline/faults/sinks.jsonl"))
KINDS = ("kafka", "postgres", "redis", "files", "dead_letters")
EACH = 10
"""Kills of one life."""


def open_place(servers: Run, kind: str, seed: int, folder: Path) -> Place:
    """Make an empty target."""
    if kind == "files":
        return FilesPlace(folder / "out")
    found = dict(servers.find({"redis": "valkey"}.get(kind, kind)))
    if kind == "kafka":
        topic = TopicPlace(KafkaConnection(**found))
        topic.forget()
        return topic
    if kind == "redis":
        return KeysPlace(give_database(**found))
    made = Postgres(database=f"drill_{seed}", **found)
    drop_database(made)
    make_database(made)
    return TablePlace(made)


def open_letters(servers: Run, seed: int) -> LettersPlace:
    """Make an empty topic of dead letters; lives take turns in what is sent."""
    place = LettersPlace(KafkaConnection(**servers.find("kafka")), of=LETTERS[seed % len(LETTERS)])
    place.forget()
    return place


def make_drilled(servers: Run, made: Forking, kind: str, seed: int, folder: Path) -> Drilled[Any]:
    """Make one sink that is to be killed."""
    if kind == "dead_letters":
        letters = open_letters(servers, seed)
        return Drilled(LetterShop(folder, letters, seed), letters, seed, made)
    place = open_place(servers, kind, seed, folder)
    return Drilled(ShownShop(folder, [place], seed), place, seed, made)


def live(servers: Run, made: Forking, kind: str, seed: int) -> None:
    """Live one life, and keep its kills."""
    with tempfile.TemporaryDirectory() as folder:
        drilled = make_drilled(servers, made, kind, seed, Path(folder))
        drilled.drill(EACH)
    kills = [asdict(each) for each in drilled.kills]
    KEPT.add({"life": [kind, seed], "revision": revision(), "kills": kills})
    print(f"{kind}, seed {seed}: {len(kills)} kills", flush=True)


def main() -> None:
    """Live what was not lived yet, and count."""
    words = argparse.ArgumentParser(prog="python -m tests.faults.sinks.drill")
    words.add_argument("--targets", default=",".join(KINDS))
    words.add_argument("--kills", type=int, default=100, help="between rows and position, for each target")
    words.add_argument("--shard", default="1/1", help="every n-th life, such as 2/4")
    words.add_argument("--fresh", action="store_true", help="forget what has passed")
    asked = words.parse_args()
    if asked.fresh:
        KEPT.file.unlink(missing_ok=True)
    first, of = map(int, asked.shard.split("/"))
    wanted = [[kind, seed] for kind in asked.targets.split(",") for seed in range(-(-asked.kills // EACH))]
    passed = [row["life"] for row in KEPT.rows()]
    with tempfile.TemporaryDirectory() as folder:
        servers = Run(Path(folder), os.getpid())
        try:
            with forking() as made:
                for kind, seed in wanted[first - 1 :: of]:
                    if [kind, seed] not in passed:
                        live(servers, made, kind, seed)
        finally:
            servers.end()
    print_counts()


def print_counts() -> None:
    """Print how many kills there were."""
    rows = KEPT.rows()
    counts = Counter((each["target"], each["point"]) for row in rows for each in row["kills"])
    for (target, point), number in sorted(counts.items()):
        what = " (rows there, position not)" if point == BETWEEN else ""
        print(f"{target}: {number} kills at {point}{what}")
    print(f"revisions: {', '.join(KEPT.revisions())}")


if __name__ == "__main__":
    main()
