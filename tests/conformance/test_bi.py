"""What `seamline sql` writes for Spark, asked of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.unit.past import build
from tests.unit.shop import Sale, Shop

from seamline.lake.read import serving_table
from seamline.serve.bi import bi_views_sql


@pytest.mark.parametrize("folder", ["plain", "it's odd"])
def test_spark_s_table_gives_the_rows(spark: SparkSession, tmp_path: Path, folder: str) -> None:
    """Wherever the warehouse is."""
    shop = Shop(tmp_path / folder)
    shop.epoch([Sale(1, "a", 10), Sale(2, "b", 5)])
    build(shop, "g", cut=0)
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, ["2013-01-01T00:00:00Z"])
    [statement] = bi_views_sql(shop.compiled, shop.layout, shop.compiled.views, "spark")
    spark.sql(statement)
    try:
        rows = spark.sql("SELECT customer, total FROM shop_sales ORDER BY 1").toArrow().to_pylist()
    finally:
        spark.sql("DROP TABLE shop_sales")
    assert rows == [{"customer": "a", "total": 10}, {"customer": "b", "total": 5}]
