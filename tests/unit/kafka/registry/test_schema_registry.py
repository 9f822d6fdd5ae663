"""Asking a registry: what it says is a schema, or that there is none; all else means that it is away."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.kafka.registry.small_registry import SmallRegistry, open_registry

from seamline.kafka.registry_connection import RegistryConnection, read_registry_connection
from seamline.kafka.schema_registry import SchemaRegistry
from seamline.model.errors import ConnectionMissing, RegistryRefused, RegistryUnavailable
from seamline.model.schemas.writer_schema import Reference, WriterSchema


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    """A registry of this test's own."""
    with open_registry() as made:
        yield made


def ask(registry: SmallRegistry, **options: Any) -> SchemaRegistry:
    """Connect to it."""
    return SchemaRegistry("main", RegistryConnection(registry.url, **options))


def test_a_schema_is_found_by_its_number(registry: SmallRegistry) -> None:
    """Registries leave the kind out where it is Avro."""
    registry.add("/schemas/ids/1", schema='"x"', references=[])
    registry.add("/schemas/ids/2", schema="message A {}", schemaType="PROTOBUF")
    found = ask(registry)
    assert found.find_schema(1) == WriterSchema(1, "AVRO", '"x"')
    assert found.find_schema(2) == WriterSchema(2, "PROTOBUF", "message A {}")
    assert found.find_schema(3) is None


def test_what_a_schema_builds_upon_comes_with_it(registry: SmallRegistry) -> None:
    """Each once, after what it builds upon itself, also where its subject was deleted since."""

    def needs(*subjects: str) -> list[dict[str, Any]]:
        return [{"name": each.upper(), "subject": f"a/{each}", "version": 2} for each in subjects]

    def path(subject: str) -> str:
        return f"/subjects/a%2F{subject}/versions/2?deleted=true"

    registry.add("/schemas/ids/1", schema="1", references=needs("b", "c"))
    registry.add(path("b"), schema="b", references=needs("c"))
    registry.add(path("c"), schema="c")
    found = ask(registry).find_schema(1)
    assert found and found.references == (Reference("C", "c"), Reference("B", "b"))
    assert registry.paths.count(path("c")) == 1
    del registry.answers[path("c")]
    assert ask(registry).find_schema(1) is None


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"error_code": 50001}),
        (404, b"<html>no such page</html>"),
        (404, {"message": "RESTEASY003210: Could not find resource"}),
        (302, {}),
        (200, b"<html>welcome</html>"),
        (200, {"schema": None}),
        (200, [1]),
        (429, {}),
    ],
)
def test_what_is_no_answer_of_a_registry_condemns_no_record(
    registry: SmallRegistry, answer: tuple[int, Any]
) -> None:
    """A proxy's error page, or a path too short, would send every record to the quarantine."""
    registry.add("/schemas/ids/1", schema='"x"')
    registry.answers["/schemas/ids/9"] = answer
    with pytest.raises(RegistryUnavailable, match="'main' cannot be asked"):
        ask(registry).find_schema(9)
    assert registry.paths == ["/schemas/ids/9"], "a redirection would take the login elsewhere"


def test_a_registry_that_is_away_or_refuses_is_told_apart(registry: SmallRegistry) -> None:
    """The one is waited for; the other needs somebody."""
    registry.answers["/schemas/ids/1"] = 401, {"error_code": 401}
    with pytest.raises(RegistryRefused, match="may not read schemas"):
        ask(registry).find_schema(1)
    gone = SchemaRegistry("main", RegistryConnection("http://127.0.0.1:9"))
    with pytest.raises(RegistryUnavailable, match="refused"):
        gone.find_schema(1)


def test_both_logins_are_sent(registry: SmallRegistry) -> None:
    """By name and password, and by a token."""
    ask(registry, username="ann", password="p:w").find_schema(1)
    ask(registry, token="secret").find_schema(1)
    ask(registry).find_schema(1)
    sent = [headers.get("Authorization") for _, headers in registry.asked]
    assert sent == [f"Basic {base64.b64encode(b'ann:p:w').decode()}", "Bearer secret", None]
    assert "secret" not in repr(RegistryConnection("http://x", token="secret", password="secret"))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ('{"conn_type": "http", "host": "r", "port": 8081}', "http://r:8081"),
        ('{"conn_type": "http", "host": "r", "schema": "https"}', "https://r"),
        ('{"host": "https://r/apis/ccompat/v7/", "port": 8443}', "https://r:8443/apis/ccompat/v7"),
        ("http://r:8081", "http://r:8081"),
        ("https://ann:p%40w@r:8081/apis/ccompat/v7", "https://r:8081/apis/ccompat/v7"),
        ("http://r:8081/https", "https://r:8081"),
        ("http://[::1]:8081", "http://[::1]:8081"),
    ],
)
def test_a_connection_is_written_as_airflow_does(text: str, url: str) -> None:
    """In JSON or as a URI."""
    found = read_registry_connection("main", {"AIRFLOW_CONN_MAIN": text})
    assert found.url == url
    if "ann" in text:
        assert (found.username, found.password) == ("ann", "p@w")


def test_extra_has_the_token_and_certificates() -> None:
    """As an object or as text."""
    extra = {"token": "t", "ssl.ca.location": "ca.pem"}
    for written in (extra, json.dumps(extra)):
        text = json.dumps({"host": "r", "extra": written})
        found = read_registry_connection("main", {"AIRFLOW_CONN_MAIN": text})
        assert (found.token, found.ca_file) == ("t", "ca.pem")
    gone = RegistryConnection("https://r", ca_file="/no/such.pem")
    with pytest.raises(RegistryRefused, match="certificates"):
        SchemaRegistry("main", gone)


@pytest.mark.parametrize("text", ["", "kafka://r:1", "{", '{"host": "ftp://r"}', '{"port": 1}', "secret"])
def test_what_is_no_connection_is_not_shown(text: str) -> None:
    """It may have a password in it."""
    with pytest.raises(ConnectionMissing) as problem:
        read_registry_connection("main", {"AIRFLOW_CONN_MAIN": text})
    assert "secret" not in str(problem.value)


def test_a_login_is_in_no_error(registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token from a file ends with a line; one that cannot be sent is not repeated."""
    with pytest.raises(RegistryUnavailable) as found:
        ask(registry, token="s3cret\ntoken").find_schema(1)
    assert "s3cret" not in f"{found.value.message} {found.value.hint}"
    made = json.dumps({"host": registry.url, "extra": {"token": "s3cret\n"}})
    monkeypatch.setenv("AIRFLOW_CONN_MAIN", made)
    assert read_registry_connection("main").token == "s3cret"
    for host in ("https://:s3cret@h", "https://u:s3cret@h"):
        monkeypatch.setenv("AIRFLOW_CONN_MAIN", json.dumps({"host": host}))
        with pytest.raises(ConnectionMissing) as missing:
            read_registry_connection("main")
        assert "s3cret" not in f"{missing.value.message} {missing.value.hint}"


def test_a_scheme_is_one_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else files of certificates would be passed over."""
    monkeypatch.setenv("AIRFLOW_CONN_MAIN", json.dumps({"host": "h", "schema": "HTTPS"}))
    assert read_registry_connection("main").url == "https://h"


def test_references_without_a_name_are_no_schema(registry: SmallRegistry) -> None:
    """What answers is no registry then, and is waited for."""
    registry.add("/schemas/ids/1", schema="1", references=[{"name": "A"}])
    with pytest.raises(RegistryUnavailable, match="references"):
        ask(registry).find_schema(1)
