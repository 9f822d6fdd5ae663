"""Spark over a warehouse in a bucket: ``on_bucket``, in a process whose JVM has what that needs."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import boto3
import pytest
from tests.ports import free_ports

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bucket() -> Iterator[Mapping[str, str]]:
    """An empty bucket of a server of this test: the settings with which it is found."""
    url = f"http://127.0.0.1:{free_ports()}"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "moto.server",
        "-H",
        "127.0.0.1",
        "-p",
        url.rpartition(":")[2],
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as server:
        try:
            while not answers(url):
                assert server.poll() is None
            given = {
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "eu-central-1",
                "AWS_ACCESS_KEY_ID": f"key-{uuid.uuid4().hex}",
                "AWS_SECRET_ACCESS_KEY": f"secret-{uuid.uuid4().hex}",
                "AWS_SESSION_TOKEN": f"token-{uuid.uuid4().hex}",
            }
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
            keys = {name.lower(): given[name] for name in names}
            client = boto3.client("s3", endpoint_url=url, region_name="eu-central-1", **keys)
            client.create_bucket(
                Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
            )
            client.close()
            yield given
        finally:
            server.terminate()


def answers(url: str) -> bool:
    """Return whether the server is up."""
    with suppress(URLError, ConnectionError), urlopen(url, timeout=5):
        return True
    return False


@pytest.mark.parametrize(
    "which",
    [pytest.param("not faults", id="reads and writes"), pytest.param("faults", marks=pytest.mark.faults)],
)
def test_spark_works_in_a_bucket(bucket: Mapping[str, str], tmp_path: Path, which: str) -> None:
    """Its readers, its writer and its connector are others there; the answers are the same."""
    home = {"SEAMLINE_WAREHOUSE": "s3://lake/warehouse", "SEAMLINE_HOME": str(tmp_path / "home")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        which,
        "tests/conformance/on_bucket.py",
    ]
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'inner'}"],
        cwd=ROOT,
        env={**os.environ, **bucket, **home},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
