"""``airflow standalone`` for the demo and the tests: on the loopback, in a home of its own, stopped whole."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import psutil

from seamline.local.preflight import require_free_ports
from seamline.model.errors import AirflowUnavailable, SetupError
from seamline.orchestration.airflow_api import AirflowApi
from seamline.supervisor.driver_process import end_session, list_session_processes, read_log_tail

COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")


class AirflowStandalone:
    """One Airflow: its database, settings, logs and output are in ``home``; user ``admin``, and ``users`` by name with
    their role, all with one password.

    It takes three ports from ``port`` on: the API and pages, and two servers of logs. ``root`` has dags/, and if it is
    a checkout plugins/ and include/; ``env`` is added for every component and task. All paths begin with ``prefix``.
    """

    def __init__(
        self,
        home: Path,
        port: int,
        *,
        root: Path,
        password: str = "",
        env: Mapping[str, str] | None = None,
        parallelism: int = 4,
        users: Mapping[str, str] = MappingProxyType({}),
        prefix: str = "",
    ) -> None:
        self.prefix = prefix
        self.home, self.port, self.root = home.resolve(), port, root.resolve()
        self.password = password or secrets.token_urlsafe(12)
        self.parallelism = parallelism
        self.env = dict(env or {})
        self.users = {"admin": "admin", **users}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where the pages and the API are."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    @property
    def ports(self) -> tuple[int, int, int]:
        """Every port it listens on: API, worker logs, triggerer logs."""
        return self.port, self.port + 1, self.port + 2

    @property
    def log(self) -> Path:
        """The output of all components."""
        return self.home / "standalone.log"

    @property
    def api(self) -> AirflowApi:
        """A client that is logged in as admin."""
        return AirflowApi(self.url, "admin", self.password)

    def settings(self) -> dict[str, str]:
        """Return the environment of all components, for `airflow` in another terminal too."""
        binaries = str(Path(sys.executable).parent)
        options = {
            "API__HOST": "127.0.0.1",
            "API__PORT": str(self.port),
            "API__BASE_URL": self.url,
            "API__WORKERS": "1",
            "CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
            "CORE__DAGBAG_IMPORT_TIMEOUT": "120",
            "CORE__DAGS_FOLDER": str(self.root / "dags"),
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__PARALLELISM": str(self.parallelism),
            "CORE__PLUGINS_FOLDER": str(self.root / "plugins"),
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
                f"{user}:{role}" for user, role in self.users.items()
            ),
            "DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
            "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
            "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            # All DAGs are of one file: where that is slow to store, Airflow would take them for removed and run none.
            "DAG_PROCESSOR__STALE_DAG_THRESHOLD": "600",
            # Its default, five seconds, is short on a busy machine: a command would fail with "database is locked". As
            # long as this the API server stands still where one of its requests waits for another, now and then.
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home / 'airflow.db'}?timeout=20",
            "LOGGING__TRIGGER_LOG_SERVER_PORT": str(self.port + 2),
            "LOGGING__WORKER_LOG_SERVER_PORT": str(self.port + 1),
            "SCHEDULER__CATCHUP_BY_DEFAULT": "False",
            "USAGE_DATA_COLLECTION__ENABLED": "False",
        }
        return {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONPATH": str(self.root / "include"),
            "SEAMLINE_RECONCILE_SECONDS": "30",
            **{f"AIRFLOW__{name}": value for name, value in options.items()},
            **self.env,
        }

    def start(self, timeout: float = 240.0) -> None:
        """Start and wait until every component is healthy and our pools are there; SetupError if not."""
        require_free_ports(self.ports)
        self.home.mkdir(parents=True, exist_ok=True)
        passwords = self.home / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps(dict.fromkeys(self.users, self.password)))
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.settings()},
                cwd=self.home,
                start_new_session=True,
            )
        self._wait(timeout)
        self.api.ensure_pools()

    def stop(self, grace: float = 45.0) -> None:
        """Interrupt it, then end what is left of its session; what its tasks detached lives on."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.poll() is None:
            # SIGTERM would leave its components behind.
            child.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(grace)
        left = list_session_processes(child.pid)
        end_session(child.pid)
        child.wait()
        psutil.wait_procs(left, timeout=10)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Airflow's own, as in a terminal that has the settings."""
        return subprocess.run(
            [sys.executable, "-m", "seamline.local.airflow_command", *words],
            env={**os.environ, **self.settings()},
            capture_output=True,
            text=True,
            check=False,
        )

    def backfill(self, dag_id: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``airflow backfill create``."""
        return self.command("backfill", "create", "--dag-id", dag_id, *words)

    def _wait(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self._child is None or self._child.poll() is not None:
                raise SetupError(
                    f"Airflow exited while it was starting. Its last output:\n{read_log_tail(self.log)}",
                    hint=f"the complete output is in {self.log}.",
                )
            try:
                health = self.api.health()
                if all(health.get(name) == "healthy" for name in COMPONENTS):
                    return
            except AirflowUnavailable:
                pass
            time.sleep(1.0)
        self.stop()
        raise SetupError(
            f"Airflow is not healthy after {timeout:g} s. Its last output:\n{read_log_tail(self.log)}",
            hint=f"the complete output is in {self.log}.",
        )
