"""A shop whose serving table moves on, and which remembers what each version of it has shown."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

from tests.faults.sinks.places import Place, Rows, read_row
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.read import serving_table
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.sinks.served_versions import ServedVersions
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.kafka_rows import encode_rows


class ShownShop:
    """A shop with a sink for each place, in a folder."""

    def __init__(self, folder: Path, places: Iterable[Place], seed: int) -> None:
        self.places = [*places]
        declared = ", ".join(each.sink for each in self.places)
        kinds = ", ".join(sorted({each.sink.partition("(")[0] for each in self.places}))
        text = DEFINITION.replace("    batch=", f"    sinks=[{declared}],\n    batch=")
        text = text.replace("import Batch,", f"import Batch, {kinds},")
        self.definitions, self.warehouse = folder / "definitions", folder / "w"
        self.definitions.mkdir(parents=True)
        (self.definitions / "shop.py").write_text(text)
        self.dice = random.Random(seed)
        self.shop = Shop(self.warehouse, sales_pipeline(text=text))
        self.versions: dict[int, Rows] = {}
        self.env = {
            "SEAMLINE_PIPELINES": str(self.definitions),
            "SEAMLINE_WAREHOUSE": str(self.warehouse),
            "SEAMLINE_HOME": str(folder / "home"),
            **{variable(each): json.dumps(each.connection) for each in self.places},
        }

    @property
    def newest(self) -> Rows:
        """What the newest version shows."""
        return self.versions[max(self.versions)]

    def move_on(self, *sales: Sale) -> None:
        """Show another version: late rows, and now and then a day that is built again."""
        dice, shop = self.dice, self.shop
        made = sales or [
            Sale(dice.randrange(2 * 24 * 60), dice.choice("abcdefg"), dice.randrange(9)) for _ in range(6)
        ]
        number = shop.epoch([*made], watermark=START + DAY)
        if dice.random() < 0.2:
            shop.build(0, number, f"g{number}")
        serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
        root = shop.layout.serving(shop.view)
        rows = encode_rows(Table.open(root).read())
        self.versions[ServedVersions(root).find_newest()] = dict(read_row(json.loads(each)) for each in rows)

    def require_shown(self, place: Place, position: SinkPosition | None) -> None:
        """Hold a target to its position: rows are those of its version, or of one of both ends of its way."""
        held = place.read()
        if position is None:
            assert held == {} or place.kind == "redis", held
        elif position.toward is None:
            assert held == self.versions[position.version]
        else:
            ends = self.versions.get(position.version, {}), self.versions[position.toward]
            assert held.keys() <= ends[0].keys() | ends[1].keys()
            for key, row in held.items():
                assert row in (ends[0].get(key), ends[1].get(key)), (key, row)

    def require_whole(self, place: Place) -> None:
        """Require that a target has what is shown now, and has had each change once."""
        assert place.read() == self.newest
        place.check()


def variable(place: Place) -> str:
    """Name the variable of the connection by which a sink of this kind writes."""
    return f"AIRFLOW_CONN_{place.kind.upper()}_DEFAULT"
