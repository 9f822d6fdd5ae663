"""The resident driver: one Spark that stays up and that builds share, reached through Spark Connect.

Supervised like a stream, under a name that no pipeline can have. Only who can read its token is let in.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from seamline.lake.storage.layout import Layout, home_folder, locate_tables
from seamline.supervisor.job_files import job_command
from seamline.supervisor.supervisor_heartbeat import ensure_stream_folder

NAME = "_driver"
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
HERE = ("localhost", "127.0.0.1", "::1")
READY = "--ready"


def read_resident_port() -> int:
    """Read the port it listens on, by setting."""
    return int(os.environ.get("SEAMLINE_CONNECT_PORT", "15002"))


def resident_layout() -> Layout:
    """Return the place of its control table."""
    return locate_tables(NAME)


def is_resident_requested() -> bool:
    """Return whether anybody ever asked for a resident driver here."""
    return resident_layout().table("control").is_dir()


def make_driver_command(token: int) -> Sequence[str]:
    """Make the driver's command; its fencing token only shows in ``ps``, as builds commit by themselves."""
    return [*job_command("driver"), "--token", str(token)]


def token_file() -> Path:
    """Return the file with the token that lets a client in; this user alone reads it."""
    return ensure_stream_folder(home_folder(), NAME) / "token"


def make_token() -> str:
    """Read the token, or make it the first time: whole or not at all, even if another process makes it too."""
    if not token_file().exists():
        with tempfile.NamedTemporaryFile("w", dir=token_file().parent) as fresh:
            fresh.write(secrets.token_urlsafe(32))
            fresh.flush()
            with suppress(FileExistsError):
                os.link(fresh.name, token_file())
    return token_file().read_text()


def client_env(url: str) -> Mapping[str, str]:
    """Return what a client of a Spark Connect server has in its environment: its address, and ours its token.

    ``url`` is ``sc://host:port/;parameters``. A token goes without TLS to the name localhost only.
    """
    parts = urlsplit(url)
    ours = parts.hostname in HERE and parts.port in (None, read_resident_port())
    if not ours or "token=" in url or not token_file().exists():
        return {"SPARK_REMOTE": url}
    local = url.replace(parts.netloc, f"localhost:{read_resident_port()}", 1)
    return {"SPARK_REMOTE": local, TOKEN: make_token()}


def bring_token() -> None:
    """Bring our token along where SPARK_REMOTE sends this process to the resident driver of its host.

    A token that the user has set is left alone.
    """
    if (url := os.environ.get("SPARK_REMOTE")) and not os.environ.get(TOKEN):
        os.environ.update(client_env(url))


def make_spare_command() -> tuple[Sequence[str], Mapping[str, str]]:
    """Make the command and the environment of the process that the driver keeps ready for a build."""
    command = [*job_command("build"), READY]
    return command, {**os.environ, **client_env(f"sc://localhost:{read_resident_port()}/")}


def find_local_port(url: str) -> int | None:
    """Find the port of a driver on this host of which its client wants nothing but to be let in; None for others."""
    parts = urlsplit(url)
    wishes = {each.partition("=")[0] for each in parts.path.strip("/").split(";") if each}
    return (parts.port or 15002) if parts.hostname in HERE and wishes <= {"token"} else None
