"""Apicurio's registry, by the API that Confluent's has: ``make services`` fetches it, and a test runs its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

from tests.services.programs import HOME
from tests.services.server import ServiceBroken, launch, require_answer, tie

from seamline.local.checkout import Checkout
from seamline.local.install import fetch_parts
from seamline.runtime.java import java_home, list_java_parts

LISTING = Path(__file__).with_suffix(".toml")
API = "/apis/ccompat/v7"


def find_runner(home: Path = HOME) -> Path:
    """Return the jar that runs it; ServiceBroken where it was not fetched."""
    [part] = list_java_parts("apicurio", LISTING)
    found = home / part.sha256[:12] / f"{part.name}-{part.revision}-runner.jar"
    if not found.exists():
        raise ServiceBroken(
            f"{found.name} is not in {found.parent}.\n\nHint: `make services` fetches it, 142 MB."
        )
    return found


def fetch(home: Path = HOME) -> None:
    """Bring the archive and unpack it, unless that was done."""
    [part] = list_java_parts("apicurio", LISTING)
    if (home / part.sha256[:12]).exists():
        return
    print(f"Fetching {part.jar} ...", file=sys.stderr, flush=True)
    archives = home / "archives"
    fetch_parts(Checkout(HOME.parents[1]), "apicurio", LISTING, archives)
    fresh = home / f"{part.sha256[:12]}.new"
    with tarfile.open(archives / part.jar) as packed:
        packed.extractall(fresh, filter="data")
    fresh.rename(home / part.sha256[:12])
    (archives / part.jar).unlink()


class Apicurio:
    """A registry that keeps what it has in memory: one that is started again numbers its schemas from 1."""

    def __init__(self, home: Path, port: int) -> None:
        self.home, self.port, self.starts = home, port, 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its API is."""
        return f"http://127.0.0.1:{self.port}{API}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.starts += 1
        log = self.home / f"apicurio-{self.starts}.log"
        options = ["-Xmx400m", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
        command = [str(java_home() / "bin" / "java"), *options, f"-Dquarkus.http.port={self.port}"]
        self.process = launch(log, [*tie(), *command, "-jar", str(find_runner())])
        require_answer("Apicurio", self.process, log, self.answers)

    def stop(self) -> None:
        """Kill it: nothing of it is kept."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def answers(self) -> bool:
        """Return whether it answers."""
        try:
            return self.ask("/subjects") is not None
        except OSError:
            return False

    def register(self, subject: str, text: str, kind: str = "AVRO", **more: Any) -> int:
        """Register a schema as a serializer does, and return its number; HTTPError where it is refused."""
        said = {"schema": text, "schemaType": kind, **more}
        return int(self.ask(f"/subjects/{subject}/versions", "POST", said)["id"])

    def require(self, subject: str, compatibility: str) -> None:
        """Let the registry refuse what does not go with the versions before."""
        self.ask(f"/config/{subject}", "PUT", {"compatibility": compatibility})

    def ask(self, path: str, method: str = "GET", said: Any = None) -> Any:
        """Ask it."""
        request = urllib.request.Request(
            self.url + path,
            data=None if said is None else json.dumps(said).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())


if __name__ == "__main__":
    fetch()
