"""A secret that is in a connection, and stands nowhere else."""

from __future__ import annotations

import json
import logging

import pytest
from fastapi.routing import APIRoute
from tests.dags.test_access import spelled

from seamline.kafka.admin import TopicAdmin
from seamline.web.app import app
from seamline.web.glance import changes

CANARY = "canary-6f1d0b"
ROUTES = sorted(
    route.path for route in app.routes if isinstance(route, APIRoute) and "GET" in (route.methods or ())
)


WAYS = {
    "password": {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": CANARY,
    },
    "tokens": {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.client.id": "reader",
        "sasl.oauthbearer.client.secret": CANARY,
        "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:9/tokens?of={CANARY}",
    },
    "passphrase": {
        "security.protocol": "SSL",
        "ssl.certificate.location": "/nowhere.pem",
        "ssl.key.password": CANARY,
    },
    "unusable": {"security.protocol": "TLS", "sasl.username": "reader", "sasl.password": CANARY},
}
"""Where a secret may be in a connection."""


def connect(monkeypatch, way: str) -> None:
    """Set a broker that does not answer, behind a secret."""
    extra = {"bootstrap.servers": "127.0.0.1:9", **WAYS[way]}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))


@pytest.mark.parametrize("path", ROUTES)
def test_no_page_and_no_answer_has_it(client, monkeypatch, caplog, path: str) -> None:
    """Nor what is logged meanwhile, whatever the secret is of."""
    caplog.set_level(logging.DEBUG)
    # Streams of changes end at once.
    monkeypatch.setattr(changes, "LASTS", 0.0)
    for way in WAYS:
        connect(monkeypatch, way)
        answer = client.get(spelled(path), headers={"Accept": "text/html"})
        assert answer.status_code != 500, answer.text
        assert CANARY not in answer.text and CANARY not in caplog.text


@pytest.mark.parametrize("way", WAYS)
def test_no_error_has_it(database, client, caplog, monkeypatch, way: str) -> None:
    """A start at an instant asks the broker, which is not there."""
    caplog.set_level(logging.DEBUG)
    connect(monkeypatch, way)
    monkeypatch.setitem(TopicAdmin.__init__.__kwdefaults__, "timeout", 1.0)
    answer = client.post("/api/v1/streams/shop", json={"action": "start", "position": "latest"})
    assert answer.status_code == (500 if way == "unusable" else 503), answer.text
    assert CANARY not in answer.text and CANARY not in caplog.text
