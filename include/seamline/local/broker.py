"""A real Kafka broker (KRaft, one node) as a child of the demo, on the loopback only."""

from __future__ import annotations

import base64
import os
import shlex
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import psutil

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.model.errors import KafkaUnavailable, SetupError

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=4194304
replica.fetch.max.bytes=4194304
log.retention.ms=-1
log.retention.bytes=-1
# Kafka's timestamps follow the replay's clock: a segment is not closed because a week of 2013 has passed.
log.roll.hours=876000
"""


class Broker:
    """One broker whose data, settings and output live in ``home``.

    ``start`` on a home whose broker still runs takes that one over; ``stop`` and ``kill`` end it, whoever
    started it, and nothing else. Clients are sent to the port ``advertised``, where someone may stand between.
    """

    def __init__(
        self,
        home: Path,
        port: int,
        controller_port: int,
        *,
        jars: Sequence[Path] | None = None,
        java: Path | None = None,
        heap: str = "512m",
        advertised: int | None = None,
    ) -> None:
        self.home = home.resolve()
        self.port = port
        self.controller_port = controller_port
        self.heap = heap
        self.advertised = advertised or port
        self._jars, self._java = jars, java
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def connection(self) -> KafkaConnection:
        """Where its clients find it."""
        return KafkaConnection(brokers=f"127.0.0.1:{self.advertised}")

    @property
    def log(self) -> Path:
        return self.home / "broker.log"

    @property
    def pid(self) -> int | None:
        """The process id of this home's broker, or None when it does not run."""
        process = self._process()
        return process.pid if process else None

    def start(self, timeout: float = 90.0) -> None:
        """Start and wait until the broker answers; raise SetupError, with its last words, if it does not."""
        if self.pid is None:
            for port in (self.port, self.controller_port):
                _assert_free(port)
            self.home.mkdir(parents=True, exist_ok=True)
            self._settings.write_text(self.format_settings())
            self._format()
            self._launch()
        self._wait(timeout)

    def format_settings(self) -> str:
        """Write the broker's settings, a line each; ``home`` is there by then."""
        return SETTINGS.format(
            port=self.port, advertised=self.advertised, controller_port=self.controller_port, data=self._data
        )

    def stop(self, grace: float = 15.0) -> None:
        """Ask the broker to stop, and kill it after ``grace`` seconds."""
        self._end(signal.SIGTERM, grace)
        self._end(signal.SIGKILL, grace)
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """End the broker at once, as a power cut would."""
        self._end(signal.SIGKILL, 15.0)

    @property
    def _settings(self) -> Path:
        return self.home / "server.properties"

    @property
    def _data(self) -> Path:
        return self.home / "data"

    @property
    def _pid_file(self) -> Path:
        return self.home / "broker.pid"

    def _format(self) -> None:
        if (self._data / "meta.properties").exists():
            return
        command = [*self._command("kafka.tools.StorageTool", "128m"), "format", "--ignore-formatted"]
        done = subprocess.run(
            [*command, f"--cluster-id={_cluster_id()}", "--config", str(self._settings)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SetupError(f"Kafka could not format {self._data}:\n{done.stdout[-2000:]}")

    def _launch(self) -> None:
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [*self._command("kafka.Kafka", self.heap), str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.home,
                start_new_session=True,
            )
        self._pid_file.write_text(str(self._child.pid))

    def _command(self, main_class: str, heap: str) -> list[str]:
        home, jars = self._java, self._jars
        if home is None or jars is None:
            from seamline.runtime.java import java_home, kafka_jars

            home, jars = home or java_home(), jars or kafka_jars()
        class_path = os.pathsep.join(str(jar) for jar in jars)
        asked = shlex.split(os.environ.get("SEAMLINE_JAVA_OPTIONS", ""))
        return [str(home / "bin" / "java"), f"-Xmx{heap}", *asked, "-cp", class_path, main_class]

    def _wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            if self.pid is None:
                raise SetupError(
                    f"The Kafka broker exited while it was starting. Its last output:\n{self._tail()}",
                    hint=f"the complete output is in {self.log}.",
                )
            try:
                with TopicAdmin(self.connection, timeout=3.0) as admin:
                    admin.topics()
                return
            except KafkaUnavailable:
                if time.monotonic() > deadline:
                    raise SetupError(
                        f"The Kafka broker does not answer after {timeout:g} s. Its last output:\n{self._tail()}",
                        hint=f"the complete output is in {self.log}.",
                    ) from None
            time.sleep(0.1)

    def _end(self, sign: signal.Signals, grace: float) -> None:
        process = self._process()
        if process is None:
            return
        os.killpg(process.pid, sign)
        deadline = time.monotonic() + grace
        while self.pid is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._child is not None and self.pid is None:
            self._child.wait()

    def _process(self) -> psutil.Process | None:
        """Find our child, else the process by its recorded id, and only if its command line names our settings.

        A child is not asked for its command line: at the moment it is started it has none yet.
        """
        if self._child is not None and self._child.poll() is None:
            return psutil.Process(self._child.pid)
        self._child = None
        try:
            process = psutil.Process(int(self._pid_file.read_text()))
            if process.status() != psutil.STATUS_ZOMBIE and str(self._settings) in process.cmdline():
                return process
        except (OSError, ValueError, psutil.Error):
            pass
        return None

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-20:])


def _cluster_id() -> str:
    """Make a cluster id in Kafka's form: a UUID in 22 characters."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]


def _assert_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise SetupError(
                f"Port {port} on 127.0.0.1 is in use, so the Kafka broker cannot start.",
                hint="stop the process that listens there, or choose another port.",
            ) from None
