"""Secrets of a connection that stand nowhere: in no command line, log, state, table, event log or page of Spark's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from kafka.admin import ACLOperation, ResourceType
from tests.e2e.joined_world import eventually
from tests.faults.rig.certificates import Authority
from tests.faults.rig.kept_orders import Kept, describe, send
from tests.faults.rig.processes import end_all, working_in
from tests.faults.rig.secured_broker import PASSWORD, SecuredBroker
from tests.faults.rig.token_issuer import SECRET, Issuer, run_issuer
from tests.ports import free_ports

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.private_keys import read_private_key

pytestmark = pytest.mark.faults
PASSPHRASE = "c4n4ry-of-a-key"
WAYS = ("password", "tokens", "certificate")
PAGES = ("jobs/", "stages/", "environment/", "executors/", "SQL/", "StreamingQuery/", "api/v1/applications")
OF_AN_APPLICATION = (
    "environment",
    "sql?details=true&planDescription=true&length=50",
    "jobs",
    "stages?details=true",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs everybody's certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issuer(authority: Authority) -> Iterator[Issuer]:
    """Who signs the tokens, which live for some seconds."""
    with run_issuer(authority.sign("issuer")) as made:
        made.lives = 20.0
        yield made


@pytest.fixture(scope="module")
def broker(
    authority: Authority, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """A broker with every way in."""
    home = tmp_path_factory.mktemp("secured")
    made = SecuredBroker(home, [free_ports() for _ in range(4)], authority.sign("broker"), authority, issuer)
    made.start()
    made.set_password(PASSWORD)
    with TopicAdmin(made.connection) as admin:
        admin.create_topic("orders", 1)
    for user in ("reader", "service", "client"):
        made.allow(ResourceType.TOPIC, "orders", ACLOperation.READ, user=user)
    send(made, 3)
    yield made
    made.stop()


def find_way(way: str, broker: SecuredBroker, issuer: Issuer) -> tuple[KafkaConnection, list[str]]:
    """Return a connection, and what of it is secret."""
    if way == "password":
        return broker.login(), [PASSWORD]
    if way == "tokens":
        # The head of each token, and of the login at the issuer.
        return broker.tokened(issuer), [SECRET, "eyJhbGciOi", "Basic c2Vyd"]
    file = broker.authority.sign("client", passphrase=PASSPHRASE)
    key = file.read_text().partition("-----BEGIN ENCRYPTED PRIVATE KEY-----")[2].split()
    opened = read_private_key(str(file), PASSPHRASE).split("\n")
    return replace(broker.certified(file), key_password=PASSPHRASE), [
        PASSPHRASE,
        key[0],
        opened[1],
        opened[2],
    ]


class Watched(Kept):
    """A stream with Spark's pages and event log, which are off by default."""

    def __init__(self, home: Path, broker: SecuredBroker, login: KafkaConnection) -> None:
        super().__init__(home, broker, describe(login))
        self.port = free_ports()
        events, settings = home / "events", home / "conf"
        events.mkdir()
        settings.mkdir()
        lines = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file://{events}",
            "spark.ui.port": str(self.port),
        }
        text = "\n".join(f"{name} {value}" for name, value in lines.items())
        (settings / "spark-defaults.conf").write_text(text)
        self.more = {"SPARK_CONF_DIR": str(settings), "SEAMLINE_SPARK_UI": "true"}

    def get(self, path: str) -> str:
        """Return a page of Spark's; what it says of one that is not there is a page too."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=30) as answer:
                return answer.read().decode()
        except HTTPError as error:
            with error:
                return error.read().decode()

    def read_pages(self) -> dict[str, str]:
        """Return all pages of Spark's that could have options of a source."""
        found = {path: self.get(path) for path in PAGES}
        application = json.loads(found["api/v1/applications"])[0]["id"]
        inner = [f"api/v1/applications/{application}/{each}" for each in OF_AN_APPLICATION]
        queries = re.findall(r"StreamingQuery/statistics/?\?id=[0-9a-f-]+", found["StreamingQuery/"])
        runs = [f"SQL/execution/?id={number}" for number in range(8)]
        return found | {path: self.get(path) for path in [*inner, *queries, *runs]}


@pytest.fixture(params=WAYS)
def watched(
    request: pytest.FixtureRequest, broker: SecuredBroker, issuer: Issuer, tmp_path: Path
) -> Iterator[tuple[Watched, list[str]]]:
    """A stream that comes in by one of the ways, and what is secret of it."""
    login, secrets = find_way(request.param, broker, issuer)
    made = Watched(tmp_path, broker, login)
    yield made, secrets
    end_all(made.home)


def test_a_secret_stands_nowhere(watched: tuple[Watched, list[str]]) -> None:
    """While a stream runs, after it has failed for its login, and in all that it leaves behind."""
    kept, secrets = watched
    kept.start()
    kept.await_all()
    pages = eventually("Spark's pages to know a query", lambda: found_query(kept.read_pages()))
    said = {f"page {path}": text for path, text in pages.items()}
    processes = working_in(kept.home)
    assert len(processes) >= 3, "supervisor, driver and JVM"
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            said[f"process {each.pid}"] = " ".join(each.cmdline())
    # Whoever wants a heap dump, which has them all, must ask for it.
    assert not [each for each in processes if "HeapDump" in " ".join(each.cmdline())]
    said["list"] = kept.seamline("stream", "list")
    kept.stop()
    said["log"] = kept.log()
    # A start that fails for the login, or the key.
    broken = "broken-" + secrets[0]
    for name in ("password", "ssl.key.password"):
        holder = kept.login if name in kept.login else kept.login["extra"]
        if holder.get(name):
            holder[name] = broken
    kept.start()
    eventually(
        "the failure to be said", lambda: "(connection 'kafka_default')" in kept.seamline("stream", "list")
    )
    said["list of a failure"] = kept.seamline("stream", "list")
    said["topics"] = kept.seamline("topics", "list")
    kept.stop()
    said |= {
        f"file {each}": each.read_bytes().decode(errors="replace")
        for each in kept.home.rglob("*")
        if each.is_file()
    }
    assert any("/events/" in name for name in said)
    assert [name for name, text in said.items() if any(each in text for each in secrets)] == []


def found_query(pages: dict[str, str]) -> dict[str, str]:
    """Return pages on which a streaming query and its plan are; else none."""
    known = any("statistics" in path for path in pages)
    planned = any("Scan" in text or "Relation" in text for path, text in pages.items() if "sql?" in path)
    return pages if known and planned else {}
