"""A number is taken apart as steadily as it is read."""

from __future__ import annotations

import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.read import merged_read, originals
from seamline.lake.store.locations import Location, delete_files, list_all_files
from seamline.model.errors import ReadUnstable
from seamline.serve.explain import explain_number
from seamline.serve.explained_number import Explanation

pytestmark = pytest.mark.slow


def asked(shop: Shop) -> Explanation:
    return explain_number(shop.compiled, shop.view, shop.layout, {"customer": "a"}, (START, None))


def test_a_file_that_vanished_starts_the_explanation_again(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep may take away what was pinned; a read pins again, and so does whoever asks where its number is from."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1), Sale(2)], watermark=START + DAY)
    real, met = originals.read_original_rows, []

    def gone_once(*given: object, **named: object) -> object:
        if not met:
            met.append(1)
            raise FileNotFoundError("compacted meanwhile")
        return real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(originals, "read_original_rows", gone_once)
    found = asked(shop)
    assert found.proven
    assert found.row["orders"] == 2
    assert met == [1]


def test_a_condition_on_a_key_is_one_on_the_rows(warehouse: Location) -> None:
    """The key that is sought has the name of the column that the view's ``where`` is about."""
    only = DEFINITION.replace("keys=[", """where="customer <> 'b'", keys=[""")
    shop = Shop(warehouse, sales_pipeline(text=only))
    shop.epoch([Sale(1), Sale(2, amount=5)], watermark=START + DAY)
    found = asked(shop)
    assert found.proven
    assert [row["amount"] for row in found.page] == [1, 5]


@pytest.mark.on_disk
def test_what_never_holds_still_is_not_said_to_be_absent(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not found is final; in motion is asked again."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    shop.build(0, 0, "g")
    monkeypatch.setattr(merged_read, "ATTEMPTS", 2)
    files = list_all_files(shop.layout.generations(shop.view))
    delete_files(each for each in files if each.suffix == ".parquet")
    with pytest.raises(ReadUnstable, match="changed during each of 2 reads"):
        asked(shop)
