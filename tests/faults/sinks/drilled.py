"""A sink that is killed again and again while its table moves on, by real processes of the command line."""

from __future__ import annotations

import json
import os
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.sinks.forked import Forking
from tests.faults.sinks.places import Place, Rows, read_row
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.read import serving_table
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.sinks.served_versions import ServedVersions
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.kafka_rows import encode_rows

BETWEEN = "sink_rows"
"""Rows are with the target, the position that says so is not."""
OTHERS = ("sink_taken", "sink_written", "sink_sent")
MOVED = ("sink_written", "sink_sent")
"""Points at which the position has moved."""


@dataclass(frozen=True)
class Kill:
    """One process that was killed, and what proves where."""

    target: str
    """The kind of the target."""
    seed: int
    """The seed of the life that it was a part of."""
    step: int
    """Its number there."""
    point: str
    """The commit point."""
    before: str
    """The position before the process was started."""
    after: str
    """The position after it was killed."""
    reached: bool
    """Whether rows had reached the target."""


@dataclass
class Drilled:
    """One shop with one sink, whose process is killed."""

    folder: Path
    place: Place
    seed: int
    forking: Forking
    kills: list[Kill] = field(default_factory=list, init=False)
    versions: dict[int, Rows] = field(default_factory=dict, init=False)
    """What the serving table has shown, by its versions."""

    def __post_init__(self) -> None:
        kind = self.place.sink.partition("(")[0]
        text = DEFINITION.replace("    batch=", f"    sinks=[{self.place.sink}],\n    batch=")
        text = text.replace("import Batch,", f"import Batch, {kind},")
        definitions = self.folder / "definitions"
        definitions.mkdir(parents=True)
        (definitions / "shop.py").write_text(text)
        self.dice = random.Random(self.seed)
        self.shop = Shop(self.folder / "w", sales_pipeline(text=text))
        self.env = {
            **os.environ,
            "SEAMLINE_PIPELINES": str(definitions),
            "SEAMLINE_WAREHOUSE": str(self.folder / "w"),
            "SEAMLINE_HOME": str(self.folder / "home"),
            f"AIRFLOW_CONN_{self.place.kind.upper()}_DEFAULT": json.dumps(self.place.connection),
        }

    def move_on(self, step: int) -> None:
        """Show another version: late rows, and now and then a day that is built again."""
        dice, shop = self.dice, self.shop
        sales = [
            Sale(dice.randrange(2 * 24 * 60), dice.choice("abcdefg"), dice.randrange(9)) for _ in range(6)
        ]
        shop.epoch(sales, watermark=START + DAY)
        if dice.random() < 0.2:
            shop.build(0, step, f"g{step}")
        serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
        root = shop.layout.serving(shop.view)
        rows = encode_rows(Table.open(root).read())
        self.versions[ServedVersions(root).find_newest()] = dict(read_row(json.loads(each)) for each in rows)

    def run(self, fail: str = "") -> tuple[int, str]:
        """Send what is new, with a failpoint that may end that."""
        return self.forking.run({**self.env, "SEAMLINE_FAIL": fail}, ["sinks", "run", "shop", "--once"])

    def kill(self, step: int, point: str) -> None:
        """Send, and be killed at a point; position, rows and what has reached the target prove where."""
        before, effects = self.place.position(), self.place.effects() if step else ""
        # A script that is not the last of its write leaves the position as it is, however many there were before.
        passing = self.dice.randrange(1, 5) if self.place.kind == "redis" and point == BETWEEN else 1
        code, said = self.run(f"{point}:{passing}")
        if code == 0:
            return
        assert code == -signal.SIGKILL, said
        reached = self.place.effects() != effects
        after = self.place.position()
        if point == BETWEEN:
            assert reached, "no row had reached the target"
            # Keys are seen as they are set, and the position says before that the target is on the way.
            assert (after and after.toward) if self.place.kind == "redis" else after == before, (
                before,
                after,
            )
        if point in MOVED:
            assert after != before
        self.require_shown(after)
        told = [each.to_json() if each else "" for each in (before, after)]
        self.kills.append(Kill(self.place.kind, self.seed, step, point, told[0], told[1], reached))

    def require_shown(self, position: SinkPosition | None) -> None:
        """Hold the target to its position: rows are those of its version, or of one of both ends of its way."""
        held = self.place.read()
        if position is None:
            assert held == {} or self.place.kind == "redis", held
        elif position.toward is None:
            assert held == self.versions[position.version]
        else:
            ends = self.versions.get(position.version, {}), self.versions[position.toward]
            assert held.keys() <= ends[0].keys() | ends[1].keys()
            for place, row in held.items():
                assert row in (ends[0].get(place), ends[1].get(place)), (place, row)

    def drill(self, kills: int, steps: int = 60) -> None:
        """Be killed so often between rows and position, each fifth time elsewhere; in the end the target is whole."""
        for step in range(steps):
            if sum(each.point == BETWEEN for each in self.kills) == kills:
                break
            self.move_on(step)
            self.kill(step, BETWEEN if step % 5 != 4 else OTHERS[step // 5 % len(OTHERS)])
            if self.dice.random() < 0.4:
                self.send()
        self.send()
        assert self.place.read() == self.versions[max(self.versions)]
        self.place.check()

    def send(self) -> None:
        """Send what is new."""
        code, said = self.run()
        assert code == 0, said
