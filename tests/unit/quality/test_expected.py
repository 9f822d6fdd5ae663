"""What a view expects of its numbers: the engine of tests and Great Expectations say the same of each."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from seamline import Batch, Expect, KafkaSource, Pipeline, Tumbling, View, sum
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import CertificateFailed
from seamline.quality.expectations import validate_presented_rows
from seamline.testing import Scenario
from seamline.testing.oracle import to_nearest_double

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("total", "bound", "meets"),
    [
        ("0.10", {"at_least": 0.1}, True),
        ("0.30", {"at_most": 0.3}, True),
        ("0.30", {"at_least": 0.3}, True),
        ("0.09", {"at_least": 0.1}, False),
        ("0.31", {"at_most": 0.3}, False),
    ],
)
def test_a_total_is_held_against_the_nearest_double(total: str, bound: dict[str, float], meets: bool) -> None:
    """A bound is a double, which is a little beside what it was written as; the total is that much beside it too."""
    view = View(
        "by_shop", ["shop"], Tumbling("1 hour"), {"total": sum("cost")}, expect=[Expect("total", **bound)]
    )
    source = KafkaSource("sales", "shop STRING, cost DECIMAL(18,2), at TIMESTAMP NOT NULL", "at")
    sales = Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))
    presented = pa.table({"total": [Decimal(total)], "interval": ["2024-01-01T00:00:00Z"]})
    assert (not validate_presented_rows(compile_pipeline(sales).views[0], presented).failed) is meets

    scenario = Scenario(sales, now="2024-01-05")
    scenario.send(f'{{"shop":"a","cost":{total},"at":"2024-01-01T10:00:00Z"}}'.encode())
    scenario.send(b'{"shop":"a","cost":1,"at":"2024-01-04T10:00:00Z"}')
    scenario.epoch()
    if meets:
        assert scenario.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    else:
        with pytest.raises(CertificateFailed, match="expectations"):
            scenario.batch("2024-01-01")


def test_a_key_is_no_total() -> None:
    """Its name may end as that of a total's text does; a total's text is about its total."""
    source = KafkaSource("sales", "n INT, n__beyond STRING, cost DECIMAL(38,2), at TIMESTAMP NOT NULL", "at")
    view = View("sales", ["n", "n__beyond"], Tumbling("1 hour"), {"total": sum("cost")})
    compiled = compile_pipeline(Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))).views[0]
    row = {"n__beyond": "7", "n": 1, "total": None, "total__beyond": "1" + 36 * "0" + ".00"}
    assert [to_nearest_double(compiled, row, name) for name in ("n", "n__beyond", "total")] == [1, "7", 1e36]
