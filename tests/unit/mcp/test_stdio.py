"""``seamline mcp``: a process that a client starts, and talks to by its pipes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from tests.unit.past import build
from tests.unit.shop import Sale, opened


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_asks_by_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Of the newest protocol, and of the one with a handshake; what the process prints besides is in nobody's way."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1, "a", 10), Sale(2, "b", 5)])
    build(made, "g", cut=0)
    noisy = tmp_path / "definitions" / "shop.py"
    noisy.write_text(noisy.read_text() + "print('a definition that prints')\n")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "seamline.cli", "mcp"],
        env={name: value for name, value in os.environ.items() if name.startswith(("SEAMLINE", "PYTHON"))},
    )

    async def asked() -> tuple[list[str], dict, bool]:
        async with Client(server, mode=mode, read_timeout_seconds=120) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            answer = await client.call_tool("query", {"sql": "SELECT sum(total) AS total FROM shop.sales"})
            refusal = await client.call_tool("query", {"sql": "SELECT * FROM read_text('/etc/passwd')"})
            return names, json.loads(answer.content[0].text), refusal.is_error

    names, found, is_refused = asyncio.run(asked())
    assert "query" in names and found["rows"] == [{"total": 15}] and is_refused
    assert found["views"][0]["complete_to"] == 0 and found["final"]


def test_without_its_package_the_command_says_what_to_install() -> None:
    """It is an extra."""
    code = "import sys; sys.modules['mcp'] = None; from seamline.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 6 and "seamline[mcp]" in done.stderr
