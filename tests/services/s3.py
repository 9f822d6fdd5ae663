"""Servers that speak S3: moto's for quick tests, and versitygw, which ``make services`` builds, for slow ones."""

from __future__ import annotations

import http.client
import sys
import uuid
from contextlib import closing
from pathlib import Path

from tests.services.addresses import Bucket
from tests.services.programs import find_program
from tests.services.server import Server, launch, make_password, require_answer, tie


def start_moto(home: Path, data: Path, port: int) -> Server:
    """Start moto's server, which keeps everything in memory and takes any key."""
    return _started(
        "moto",
        home,
        port,
        [sys.executable, "-m", "tests.services.moto_store", "-H", "127.0.0.1", "-p", str(port)],
    )


def start_versitygw(home: Path, data: Path, port: int) -> Server:
    """Start a gateway to a folder; without keep-alive, with which uploads in parts fail now and then."""
    secret = make_password()
    words = ["--access", "seamline", "--secret", secret, "--port", f"127.0.0.1:{port}"]
    command = [str(find_program("versitygw")), *words, "posix", str(data)]
    return _started("versitygw", home, port, command, secret)


def make_bucket(endpoint: str, access_key: str, secret_key: str) -> Bucket:
    """Make an empty bucket under a name of its own."""
    import boto3
    from botocore.config import Config

    made = Bucket(endpoint, f"test-{uuid.uuid4().hex[:12]}", access_key, secret_key)
    patience = Config(connect_timeout=10, read_timeout=10, retries={"total_max_attempts": 1})
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=made.region,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=patience,
    )
    with closing(client):
        client.create_bucket(Bucket=made.name)
    return made


def _started(name: str, home: Path, port: int, command: list[str], secret: str = "") -> Server:
    log = home / "log"
    child = launch(log, [*tie(), *command])
    require_answer(name, child, log, lambda: answers(port))
    address = {"endpoint": f"http://127.0.0.1:{port}", "access_key": "seamline"}
    return Server(child.pid, {**address, "secret_key": secret or make_password()}, log)


def answers(port: int) -> bool:
    """Return whether somebody speaks HTTP at the port."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except OSError:
            return False
    return True
