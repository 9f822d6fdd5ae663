"""What Spark asks of Kubernetes, answered by this process: pods are kept, and those of executors run as processes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

ADDRESS = "127.0.0.1"
READY = {"phase": "Running", "podIP": ADDRESS, "conditions": [{"type": "Ready", "status": "True"}]}
Item = dict[str, Any]


@dataclass
class Cluster:
    """The objects of one namespace by kind and name, and the processes that pods are."""

    logs: Path
    """The folder of what pods print."""
    image: Path
    """The folder that pods begin in: that of their image."""
    items: dict[tuple[str, str], Item] = field(default_factory=dict)
    """What is there."""
    made: list[Item] = field(default_factory=list)
    """Every pod that was created, as it was asked for."""
    asked: list[str] = field(default_factory=list)
    """Each request, as method and path."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By the pod's name."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Of the above."""

    def create(self, kind: str, item: Item) -> Item:
        """Keep an object, and run it if it is a pod."""
        with self.lock:
            name = item["metadata"].setdefault("name", f"one-{uuid.uuid4().hex[:6]}")
            item["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": "data", "resourceVersion": "1"}
            item["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            self.items[kind, name] = item
            if kind == "pods":
                self.made.append(json.loads(json.dumps(item)))
                item["status"] = {**READY, "startTime": "2026-01-01T00:00:00Z"}
                if item["spec"]["containers"]:
                    self.run(name, item)
            return item

    def run(self, name: str, pod: Item) -> None:
        """Run the one container of a pod as a process of this machine."""
        [container] = pod["spec"]["containers"]
        places = {"metadata.name": name, "metadata.uid": pod["metadata"]["uid"], "status.podIP": ADDRESS}
        env = {}
        for each in container["env"]:
            source = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            env[each["name"]] = places[source] if source else each.get("value", "")
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "JAVA_HOME") if name in os.environ}
        command = [*container["command"], *container["args"]]
        with (self.logs / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, env={**kept, **env}, stdout=log, stderr=log, cwd=self.image
            )

    def select(self, kind: str, labels: str) -> list[Item]:
        """List objects by a selector; of operators only equality is known."""
        with self.lock:
            pairs = [
                each.split("=") for each in labels.split(",") if each.count("=") == 1 and "!" not in each
            ]
            return [
                item
                for (of, _), item in self.items.items()
                if of == kind
                and all(item["metadata"].get("labels", {}).get(name) == value for name, value in pairs)
            ]

    def delete(self, kind: str, name: str) -> None:
        """Forget an object, and end its process."""
        with self.lock:
            self.items.pop((kind, name), None)
            if process := self.processes.get(name):
                process.kill()

    def stop(self) -> None:
        """End every process."""
        for process in self.processes.values():
            process.kill()
            process.wait(30)


class Handler(BaseHTTPRequestHandler):
    """Answers requests to a cluster."""

    protocol_version = "HTTP/1.1"

    @property
    def cluster(self) -> Cluster:
        """Return the cluster of the server."""
        found: Cluster = self.server.cluster  # type: ignore[attr-defined]
        return found

    def answer(self, body: Item, code: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")

    def place(self) -> tuple[str, str, str]:
        parts = urlsplit(self.path)
        self.cluster.asked.append(f"{self.command} {parts.path}")
        words = parts.path.strip("/").split("/")[4:]
        labels = parse_qs(parts.query).get("labelSelector", [""])[0]
        return words[0] if words else "", words[1] if len(words) > 1 else "", labels

    def do_GET(self) -> None:
        kind, name, labels = self.place()
        if name:
            found = self.cluster.items.get((kind, name))
            self.answer(found or {"kind": "Status", "code": 404, "reason": "NotFound"}, 200 if found else 404)
        elif "watch=true" in self.path:
            # Whoever watches looks again by a list.
            self.answer({"kind": "Status", "code": 503}, 503)
        else:
            kinds = {"pods": "PodList", "configmaps": "ConfigMapList"}
            self.answer({"kind": kinds.get(kind, "List"), "apiVersion": "v1",
                         "metadata": {"resourceVersion": "1"}, "items": self.cluster.select(kind, labels)})  # fmt: skip

    def do_POST(self) -> None:
        kind, _, _ = self.place()
        self.answer(self.cluster.create(kind, self.body()), 201)

    def do_PATCH(self) -> None:
        kind, name, _ = self.place()
        self.body()
        self.answer(self.cluster.items.get((kind, name), {}))

    def do_DELETE(self) -> None:
        kind, name, labels = self.place()
        self.body()
        for each in (
            [name] if name else [one["metadata"]["name"] for one in self.cluster.select(kind, labels)]
        ):
            self.cluster.delete(kind, each)
        self.answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def stand_in(logs: Path, image: Path) -> Iterator[tuple[Cluster, str]]:
    """Run a stand-in; give it with its address."""
    cluster = Cluster(logs, image)
    server = ThreadingHTTPServer((ADDRESS, 0), Handler)
    server.cluster = cluster  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield cluster, f"http://{ADDRESS}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        cluster.stop()
