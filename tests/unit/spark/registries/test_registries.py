"""The stream asks for each schema once, keeps it for everybody, and waits for a registry that is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.kafka.registry.small_registry import SmallRegistry, open_registry
from tests.unit.records import pipeline

from seamline import Json
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.schemas.kept_schemas import (
    KeptSchemas,
    SchemasWanted,
    begin_registry,
    list_begun_topics,
)
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import ConnectionMissing, RegistryRefused, RegistryUnavailable
from seamline.model.schemas.writer_schema import find_wanted_schemas
from seamline.spark.stream import registries as registries_module
from seamline.spark.stream.registries import Registries, require_registry_connections
from seamline.spark.tasks.task import WANTED, merge_task_reports

MADE = compile_pipeline(pipeline("id BIGINT, at TIMESTAMP", format=Json(registry="main")))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    """A registry that the connection names."""
    with open_registry() as made:
        monkeypatch.setenv("AIRFLOW_CONN_MAIN", json.dumps({"host": made.url}))
        yield made


def kept(registries: Registries) -> KeptSchemas:
    """Return what tasks read by."""
    found = registries.current_schemas()
    assert found
    return found


def test_what_tasks_lack_is_asked_for_once(registry: SmallRegistry, tmp_path: Path) -> None:
    """The next epoch, the next driver and every build find it in the warehouse."""
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    registries = Registries(MADE, Layout(tmp_path, "records"))
    assert registry.asked == []
    assert registries.want({"main": [1, 2], "elsewhere": [3]})
    found = kept(registries)
    assert registry.paths == ["/schemas/ids/1", "/schemas/ids/2", "/schemas/ids/1"], "is it still the same?"
    assert found.find("main", [1, 2])[2] is None
    assert not registries.want({"main": [1, 2]}), "nothing new would come of it"
    assert kept(Registries(MADE, Layout(tmp_path, "records"))).find("main", [1])[1]
    assert registry.paths[3:] == ["/schemas/ids/1"], "another driver compares them at its start"


def test_a_registry_that_has_lost_what_it_had_condemns_nothing(
    registry: SmallRegistry, tmp_path: Path
) -> None:
    """One that starts empty, or a copy that is behind, has no schema of that number either."""
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    registries = Registries(MADE, Layout(tmp_path, "records"))
    registries.want({"main": [1]})
    kept(registries)
    del registry.answers["/schemas/ids/1"]
    registries.want({"main": [2]})
    with pytest.raises(RegistryUnavailable, match="neither schema 2 nor those that it had"):
        registries.current_schemas()
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    assert kept(registries).find("main", [2]) == {2: None}


def test_another_registry_behind_the_connection_is_found_out(registry: SmallRegistry, tmp_path: Path) -> None:
    """Its numbers mean other schemas: a stream would read by those of the one before."""
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    registries = Registries(MADE, Layout(tmp_path, "records"))
    registries.want({"main": [1]})
    kept(registries)
    registry.add("/schemas/ids/1", schema='"string"')
    with pytest.raises(RegistryRefused, match="Schema 1 of the registry 'main' is another one"):
        Registries(MADE, Layout(tmp_path, "records")).current_schemas()


def test_a_number_is_unknown_for_a_while(registry: SmallRegistry, tmp_path: Path) -> None:
    """A registry may have learned it since: a record that comes later is read."""
    now = [0.0]
    registries = Registries(MADE, Layout(tmp_path, "records"), lambda: now[0])
    registries.want({"main": [7]})
    assert kept(registries).find("main", [7]) == {7: None}
    registry.add("/schemas/ids/7", schema="{}", schemaType="JSON")
    assert kept(registries).find("main", [7]) == {7: None}
    now[0] = 31.0
    assert kept(registries).find("main", [7]) == {7: None}, "not between two attempts at the same records"
    registries.forget_unknown()
    with pytest.raises(SchemasWanted):
        kept(registries).find("main", [7])
    assert registries.want({"main": [7]})
    assert kept(registries).find("main", [7])[7]


def test_numbers_that_no_registry_has_are_asked_for_nowhere(registry: SmallRegistry, tmp_path: Path) -> None:
    """A record that no serializer wrote may begin with 0 too: what it names would be out of a registry's numbers."""
    registries = Registries(MADE, Layout(tmp_path, "records"))
    assert kept(registries).find("main", [2**31]) == {2**31: None}
    assert registry.asked == []


def test_many_unknown_numbers_are_known_until_their_records_are_read(
    registry: SmallRegistry, tmp_path: Path
) -> None:
    """Were some forgotten meanwhile, each attempt would ask for those, and the epoch would never end."""
    now = [0.0]
    registries = Registries(MADE, Layout(tmp_path, "records"), lambda: now[0])
    for first in range(0, 300, 100):
        assert registries.want({"main": range(first, first + 100)})
        kept(registries)
        now[0] += 20.0
    assert set(kept(registries).find("main", range(300)).values()) == {None}


def test_a_silent_registry_is_compared_at_most_every_half_minute(
    registry: SmallRegistry, tmp_path: Path
) -> None:
    """All that is needed is kept: epochs do not wait for it."""
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    first = Registries(MADE, Layout(tmp_path, "records"))
    first.want({"main": [1]})
    kept(first)
    registry.answers["/schemas/ids/1"] = 503, {}
    asked = len(registry.asked)
    again = Registries(MADE, Layout(tmp_path, "records"), lambda: 100.0)
    for _ in range(5):
        assert kept(again).find("main", [1])[1]
    assert len(registry.asked) == asked + 1


def test_what_a_topic_names_is_asked_for_when_its_source_gets_the_registry(
    registry: SmallRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another source may have had it for long: that says nothing of what this one's records name."""
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    named: list[list[str]] = []
    monkeypatch.setattr(
        registries_module, "find_named_schemas", lambda _, __, topics: named.append([*topics]) or [1]
    )
    layout = Layout(tmp_path, "records")
    begin_registry(layout.schemas, "main", ["elsewhere"])
    for _ in range(2):
        Registries(MADE, layout).begin(None)  # type: ignore[arg-type]
    assert named == [[*MADE.source.topics]]
    assert list_begun_topics(layout.schemas, "main") == {"elsewhere", *MADE.source.topics}


def test_a_registry_that_is_away_is_asked_before_records_are_read_again(
    registry: SmallRegistry, tmp_path: Path
) -> None:
    """Epochs fail without a task, and go on by themselves when it is back."""
    registry.answers["/schemas/ids/1"] = 503, {}
    registries = Registries(MADE, Layout(tmp_path, "records"))
    registries.want({"main": [1]})
    for _ in range(2):
        with pytest.raises(RegistryUnavailable):
            registries.current_schemas()
    registry.add("/schemas/ids/1", schema="{}", schemaType="JSON")
    assert kept(registries).find("main", [1])[1]


def test_a_pipeline_without_a_registry_asks_nobody(tmp_path: Path) -> None:
    """Nor is there a folder for what it would keep."""
    plain = compile_pipeline(pipeline("id BIGINT, at TIMESTAMP"))
    require_registry_connections(plain)
    assert Registries(plain, Layout(tmp_path, "records")).current_schemas() is None
    assert [*tmp_path.iterdir()] == []


def test_a_connection_that_is_not_there_is_told_before_spark_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a minute less to find out."""
    monkeypatch.delenv("AIRFLOW_CONN_MAIN", raising=False)
    with pytest.raises(ConnectionMissing, match="'main'"):
        require_registry_connections(MADE)


def test_what_a_task_lacks_reaches_the_driver() -> None:
    """In words: through Spark an error keeps nothing else."""
    wanted = SchemasWanted("main", range(5, 2000))
    assert find_wanted_schemas(f"org.apache.spark...: {wanted}\n\tat java") == {"main": [*range(5, 1005)]}
    assert find_wanted_schemas("Schemas of the registry 'x' are not kept yet: none.") == {}
    with pytest.raises(SchemasWanted) as found:
        merge_task_reports([(WANTED, wanted.message.encode())])
    assert found.value.ids == wanted.ids
