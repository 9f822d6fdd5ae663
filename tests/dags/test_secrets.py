"""A password that is in a connection, and stands nowhere else."""

from __future__ import annotations

import json
import logging

import pytest
from fastapi.routing import APIRoute
from tests.dags.test_access import spelled

from seamline.kafka.admin import TopicAdmin
from seamline.web.app import app

CANARY = "canary-6f1d0b"
ROUTES = sorted(
    route.path for route in app.routes if isinstance(route, APIRoute) and "GET" in (route.methods or ())
)


@pytest.fixture
def connection(monkeypatch) -> None:
    """A broker that does not answer, behind a password."""
    extra = {
        "bootstrap.servers": "127.0.0.1:9",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": CANARY,
    }
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))


@pytest.mark.parametrize("path", ROUTES)
def test_no_page_and_no_answer_has_it(client, connection, caplog, path: str) -> None:
    """Nor what is logged meanwhile."""
    caplog.set_level(logging.DEBUG)
    answer = client.get(spelled(path), headers={"Accept": "text/html"})
    assert answer.status_code != 500, answer.text
    assert CANARY not in answer.text and CANARY not in caplog.text


def test_no_error_has_it(database, client, connection, caplog, monkeypatch) -> None:
    """A start at an instant asks the broker, which is not there."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setitem(TopicAdmin.__init__.__kwdefaults__, "timeout", 1.0)
    answer = client.post("/api/v1/streams/shop", json={"action": "start", "position": "latest"})
    assert answer.status_code == 503, answer.text
    assert CANARY not in answer.text and CANARY not in caplog.text
