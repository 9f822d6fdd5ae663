"""Names of datasets and ids of runs, as others make them who tell of the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openlineage.client.naming.dataset import GCS, S3, Kafka, LocalFileSystem, Postgres
from openlineage.client.uuid import generate_static_uuid

from seamline.plan.lineage.batch_events import name_parents
from seamline.plan.lineage.dataset_names import DatasetName, name_place, name_postgres_table, name_topic
from seamline.plan.lineage.run_ids import make_run_id


@given(
    moment=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)),
    about=st.text(max_size=40).filter(lambda text: text.isprintable()),
)
def test_ids_are_those_of_the_official_client(moment: datetime, about: str) -> None:
    """Airflow's provider names its runs by the client; a parent of another id would be no parent."""
    assert make_run_id(moment, about) == generate_static_uuid(moment, about.encode())


def test_ids_know_no_zone() -> None:
    """A moment is the same wherever its clock stands."""
    here = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    assert make_run_id(here, "x") == make_run_id(here.astimezone(UTC), "x")


def test_parents_are_named_as_airflows_provider_does() -> None:
    """By its formulas: the ids, the attempt and a mapped task's number; of a run how often it was cleared."""
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    found = name_parents("shop", "orders__batch", "build", moment, attempt=2, mapped=-1, cleared=1)
    assert found.task.job == "orders__batch.build"
    assert found.task.id == str(generate_static_uuid(moment, b"shop.orders__batch.build.2.-1"))
    assert found.dag.id == str(generate_static_uuid(moment, b"shop.orders__batch.1"))


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (name_topic("one:9092, two:9093", "shop.orders"), Kafka("one", "9092", "shop.orders")),
        (
            name_postgres_table("db, other", 5432, "shop", "public", "orders"),
            Postgres("db", "5432", "shop", "public", "orders"),
        ),
        (name_place("/lake/orders/master"), LocalFileSystem("/lake/orders/master")),
        (name_place("file:///lake/orders/master"), LocalFileSystem("/lake/orders/master")),
        (name_place("s3://lake/tables/orders/master"), S3("lake", "tables/orders/master")),
        (name_place("gs://lake/tables/orders/master"), GCS("lake", "tables/orders/master")),
    ],
    ids=lambda each: each.namespace if isinstance(each, DatasetName) else "",
)
def test_datasets_have_the_names_of_the_specification(
    found: DatasetName, named: Kafka | LocalFileSystem | Postgres | S3 | GCS
) -> None:
    """Another job that reads the same table calls it the same, or its lineage ends there."""
    assert (found.namespace, found.name) == (named.get_namespace(), named.get_name())
