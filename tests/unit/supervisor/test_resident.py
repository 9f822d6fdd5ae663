"""The resident driver's address, and who is let in."""

from __future__ import annotations

import os
import socket
import stat

import pytest

from seamline.model.errors import SetupError
from seamline.spark.session import session
from seamline.supervisor import resident


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    monkeypatch.setenv("SEAMLINE_CONNECT_PORT", "15003")


def test_the_token_is_made_once_and_is_for_this_user_alone():
    """Whoever may talk to the driver may run code as its user."""
    token = resident.make_token()
    assert len(token) > 30
    assert resident.make_token() == token
    assert stat.S_IMODE(resident.token_file().stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:15003", "localhost:15003"])
def test_a_client_on_this_host_brings_our_token_along(host):
    """A token goes without TLS to the name localhost only."""
    token = resident.make_token()
    env = resident.client_env(f"sc://{host}/;user_id=ada")
    assert env == {"SPARK_REMOTE": "sc://localhost:15003/;user_id=ada", resident.TOKEN: token}


@pytest.mark.parametrize(
    "url", ["sc://spark.example:15002/", "sc://localhost:15003/;token=theirs", "sc://localhost:15004/"]
)
def test_another_server_is_not_told_our_token(url):
    """It is a secret, and not theirs."""
    resident.make_token()
    assert resident.client_env(url) == {"SPARK_REMOTE": url}


def test_a_command_that_is_sent_to_our_server_brings_its_token(monkeypatch):
    """The documentation named SPARK_REMOTE alone, and the driver let nobody in who did as it says."""
    token = resident.make_token()
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:15003")
    monkeypatch.delenv(resident.TOKEN, raising=False)
    resident.bring_token()
    assert os.environ[resident.TOKEN] == token


def test_a_token_that_the_user_has_set_is_left_alone(monkeypatch):
    """Another server of theirs may listen where our driver once did."""
    resident.make_token()
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:15003")
    monkeypatch.setenv(resident.TOKEN, "theirs")
    resident.bring_token()
    assert os.environ[resident.TOKEN] == "theirs"


def test_a_command_without_a_server_brings_nothing(monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv(resident.TOKEN, raising=False)
    resident.bring_token()
    assert resident.TOKEN not in os.environ


def test_a_server_that_does_not_answer_is_named(monkeypatch):
    """With the commands that tell why."""
    monkeypatch.setattr(session, "ANSWERS_WITHIN", 0.3)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(SetupError, match=f"answered at localhost:{port} within 0.3 s"):
        session.of_server(f"sc://localhost:{port}/;token=x")
