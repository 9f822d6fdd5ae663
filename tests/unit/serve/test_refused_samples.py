"""Refused records by reason: the ledger's counts, the newest as samples, whatever files the quarantine is in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from tests.unit.shop import START, Shop

from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import QUARANTINE
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.model.protocol.epoch import Epoch
from seamline.serve.imported_rows import ImportedPlaces
from seamline.serve.refused_records import build_refused_sample, list_refusals


def refuse(shop: Shop, *reasons: str, held: bool = True) -> None:
    """Hold an epoch that refuses a record for each reason, or die before it is held."""
    number = next(shop.numbers)
    table = Table.ensure(shop.layout.table("quarantine"), QUARANTINE)
    rows = [
        {"_topic": "sales", "_topic_id": "t", "_partition": 0, "_offset": 10 * number + at, "_epoch": number}
        | {"_reason": reason, "_value": b"{bad", "_detail": f"{reason} {number}"}
        for at, reason in enumerate(reasons)
    ]
    file = data_files.write_data_file(
        pa.Table.from_pylist(rows, schema=QUARANTINE), table.root, f"{number:06d}.parquet"
    )
    table.append([file], txns={EPOCH: number})
    if held:
        blank = Epoch(
            number, 0, START, shop.compiled.record_version, edge=True, frontiers={shop.view.id: number}
        )
        row = replace(blank, refused={reason: reasons.count(reason) for reason in reasons})
        shop.master.commit(row, [])
        shop.ledger.append([row])


def told(shop: Shop) -> list[tuple[str, int, list[str]]]:
    return [
        (each.reason, each.count, [sample.detail for sample in each.samples])
        for each in list_refusals(shop.compiled, shop.layout)
    ]


def test_the_newest_are_shown_and_all_are_counted(warehouse: Location) -> None:
    """Of packed files, of single ones, and nothing of an epoch that is dead."""
    shop = Shop(warehouse)
    refuse(shop, "old")
    for _ in range(4):
        refuse(shop, "null", "null", "rule")
    refuse(shop, "null", held=False)
    expected = [("null", 8, ["null 4", "null 4"]), ("rule", 4, ["rule 4", "rule 3"]), ("old", 1, ["old 0"])]
    assert told(shop) == expected
    maintain_tables(shop.compiled, shop.layout)
    assert told(shop) == expected
    refuse(shop, "rule")
    assert told(shop)[1] == ("rule", 5, ["rule 6", "rule 4"])


def test_what_cannot_be_parsed_is_shown_once(tmp_path: Path) -> None:
    """The detail of malformed JSON is the text itself."""
    places = ImportedPlaces(Layout(tmp_path, "shop"))
    row = {
        "_topic": "sales",
        "_topic_id": "t",
        "_partition": 0,
        "_offset": 7,
        "_value": b"{bad" * 50,
        "_detail": "{bad" * 50,
    }
    assert build_refused_sample(row, places).detail == ""
    assert build_refused_sample(row, places).value == "{bad" * 30
    assert build_refused_sample(row | {"_detail": "unexpected end"}, places).detail == "unexpected end"
