"""Connections of servers: both forms of Airflow, and never a secret in a message."""

from __future__ import annotations

import pytest

from seamline.model.errors import ConnectionMissing
from seamline.sinks.server_connections import ServerConnection, read_server_connection

JSON = (
    '{"conn_type": "postgres", "host": "db", "port": 5433, "login": "me", "password": "s3cret", "schema": "shop",'
    ' "extra": "{\\"sslmode\\": \\"require\\"}"}'
)
URI = "postgres://me:s3cret@db:5433/shop?sslmode=require"


@pytest.mark.parametrize("text", [JSON, URI], ids=["json", "uri"])
def test_both_forms_of_airflow_are_read(text: str) -> None:
    """A task hands a connection on as JSON; people write URIs."""
    found = read_server_connection("shop_db", "postgres", "database", {"AIRFLOW_CONN_SHOP_DB": text})
    extra = {"sslmode": "require"}
    assert found == ServerConnection("shop_db", "postgres", "db", 5433, "me", "s3cret", "shop", extra)
    assert "s3cret" not in repr(found) and "s3cret" not in found.called
    assert found.hide_secrets("no s3cret here") == "no *** here"


@pytest.mark.parametrize("text", ["", "{", "{}", "s3cret", '{"host": "db", "port": "s3cret"}', '["s3cret"]'])
def test_what_is_no_connection_is_said_without_its_text(text: str) -> None:
    """The text may have the password in it."""
    with pytest.raises(ConnectionMissing) as caught:
        read_server_connection("shop_db", "postgres", "database", {"AIRFLOW_CONN_SHOP_DB": text})
    assert "AIRFLOW_CONN_SHOP_DB" in str(caught.value) and "s3cret" not in str(caught.value)
