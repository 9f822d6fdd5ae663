"""The scoring service that an example asks, over real connections."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from typing import Any

import click
import httpx
import pytest

from seamline.local.scoring import Manners, ScoringService, risk_of
from seamline.local.scoring.__main__ import serve
from seamline.local.scoring.counts import Counts
from seamline.local.scoring.exchange import LONGEST, Request
from seamline.local.scoring.manners import REFUSAL, WRONG, Asked
from seamline.model.errors import BadRange, SetupError

AT_ONCE = Manners(latency=0.0)
MANY = [Asked(f"user-{number}", f"{number}.50") for number in range(2000)]


def score(service: ScoringService, *asked: Asked) -> httpx.Response:
    return httpx.post(f"{service.url}/score", json=[each._asdict() for each in asked])


def exchange(service: ScoringService, sent: bytes) -> bytes:
    """Send bytes, and read until the service closes the connection."""
    with socket.create_connection((service.host, service.port)) as line:
        line.sendall(sent)
        return b"".join(iter(lambda: line.recv(65_536), b""))


def test_it_answers_as_its_seed_says() -> None:
    """A test that knows the seed knows the risk of each payment, whoever asks and how often."""
    with ScoringService(replace(AT_ONCE, seed=7)) as service:
        asked = [Asked("ada", "12.50"), Asked("bob", "12.50"), Asked("ada", "12.5")]
        expected = [{"risk": risk_of(*each, 7)} for each in asked]
        assert score(service, *asked).json() == expected
        assert score(service, *asked[:1]).json() == expected[:1]
        assert score(service).json() == []
    assert len({each["risk"] for each in expected} | {risk_of("ada", "12.50", 8)}) == 4


def test_a_risk_stays_what_it_is() -> None:
    """By hand: the first six bytes of a hash, so the same in each release and on each machine."""
    assert risk_of("ada", "12.50", 7) == 0.6739
    assert all(0 <= risk_of(*each, 1) <= 1 for each in MANY)


def test_shares_are_of_distinct_requests() -> None:
    """What is drawn for a request is the same in each call; what a smaller share has, a larger one has."""
    manners = Manners(slow=0.1, wrong=0.2, refuses=0.3)
    refused = [each for each in MANY if manners.answer(each) == {"refused": REFUSAL}]
    wrong = [each for each in MANY if manners.answer(each) == {"risk": WRONG}]
    slow = [each for each in MANY if manners.seconds([each]) == manners.slow_for]
    assert [round(len(each) / len(MANY), 1) for each in (refused, wrong, slow)] == [0.3, 0.1, 0.1]
    more = replace(manners, refuses=0.6)
    assert all(more.draws("refuses", each) for each in refused)
    assert manners.seconds(MANY) == 5.0
    assert manners.seconds([each for each in MANY if each not in slow]) == 0.02


def test_a_request_that_fails_succeeds_when_it_is_asked_again() -> None:
    """A call fails for any request of it, and for each of them once."""
    with ScoringService(replace(AT_ONCE, fails=0.5)) as service:
        failing = [each for each in MANY[:20] if service.manners.draws("fails", each)]
        well = next(each for each in MANY[:20] if each not in failing)
        assert [score(service, well, failing[0]).status_code for _ in range(3)] == [503, 200, 200]
        assert [score(service, each).status_code for each in failing] == [200] + [503] * (len(failing) - 1)
        assert score(service, *failing, well).status_code == 200


def test_it_counts_what_it_was_asked() -> None:
    """So a test can tell whether a payment was asked about twice; calls that failed count, too."""
    ada, bob = Asked("ada", "12.50"), Asked("bob", "7.00")
    with ScoringService(replace(AT_ONCE, fails=1.0)) as service:
        score(service, bob)
        score(service, ada, bob)
        counted = httpx.get(f"{service.url}/counts").json()
    assert counted == {"calls": 2, "requests": 3, "asked": {"bob 7.00": 2, "ada 12.50": 1}}
    assert list(counted["asked"]) == ["bob 7.00", "ada 12.50"]


def test_it_remembers_only_so_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may run for days: what is new then is counted in the totals, and who failed long ago fails again."""
    monkeypatch.setattr("seamline.local.scoring.counts.MOST", 2)
    counts, manners = Counts(), Manners(fails=1.0)
    for each in (*MANY[:3], MANY[0]):
        counts.add([each])
    assert counts.to_dict() == {"calls": 4, "requests": 4, "asked": {MANY[0].name: 2, MANY[1].name: 1}}
    assert [counts.fails([each], manners) for each in (*MANY[:3], MANY[2], MANY[0])] == [True] * 3 + [
        False,
        True,
    ]


def test_it_is_away_until_it_is_told_otherwise() -> None:
    """Who asks sees a connection that closes, and no count; its manners can still be changed."""
    with ScoringService(AT_ONCE) as service:
        said = httpx.post(f"{service.url}/manners", json={"away": True, "seed": 3}).json()
        assert said == asdict(service.manners) == asdict(replace(AT_ONCE, away=True, seed=3))
        with pytest.raises(httpx.RemoteProtocolError):
            score(service, *MANY[:1])
        assert service.counts.calls == 0
        httpx.post(f"{service.url}/manners", json={"away": False})
        assert score(service, *MANY[:1]).json() == [{"risk": risk_of(*MANY[0], 3)}]
        assert httpx.get(f"{service.url}/manners").json() == asdict(replace(AT_ONCE, seed=3))


def test_a_call_that_is_being_answered_ends_where_it_goes_away() -> None:
    """An answer that was on its way is lost, as it is where a server dies."""
    service = ScoringService(AT_ONCE)

    async def story() -> object:
        call = asyncio.create_task(service.answer(Request("POST", "/score", b"[]", True)))
        await asyncio.sleep(0)
        service.manners = replace(AT_ONCE, away=True)
        return await call

    assert asyncio.run(story()) is None
    assert service.counts.calls == 1


@pytest.mark.parametrize(
    "said",
    [
        {"polite": 1.0},
        {"away": 1},
        {"seed": 1.5},
        {"slow": "0.5"},
        {"slow": True},
        {"wrong": 1.5},
        {"fails": float("nan")},
        {"latency": -1},
        {"slow_for": float("inf")},
    ],
    ids=str,
)
def test_a_setting_that_there_is_not_is_refused(said: dict[str, Any]) -> None:
    """A misspelt one would leave a test without its fault."""
    with pytest.raises(BadRange):
        AT_ONCE.changed_by(said)
    with ScoringService(AT_ONCE) as service:
        reply = httpx.post(f"{service.url}/manners", content=json.dumps(said))
        assert (reply.status_code, [*reply.json()]) == (400, ["error"])
        assert service.manners == AT_ONCE


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/score", b"{", 400),
        ("POST", "/score", b"\xff", 400),
        ("POST", "/score", b"{}", 400),
        ("POST", "/score", b'["ada"]', 400),
        ("POST", "/score", b'[{"user": "ada"}]', 400),
        ("POST", "/score", b'[{"user": "ada", "amount": 12.5}]', 400),
        ("POST", "/manners", b"[]", 400),
        ("GET", "/score", b"", 404),
        ("GET", "/", b"", 404),
        ("POST", "/score?of=me", b"[]", 200),
    ],
)
def test_what_is_no_call_is_refused(method: str, path: str, body: bytes, status: int) -> None:
    """It says so, counts nothing, and goes on with the same connection."""
    with ScoringService(AT_ONCE) as service, httpx.Client(base_url=service.url) as client:
        assert client.request(method, path, content=body).status_code == status
        assert client.get("/counts").json()["requests"] == 0


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET / SPDY/3\r\n\r\n",
        b"POST /score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (LONGEST + 1),
        b"GET / HTTP/1.1\r\nCookie: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
    ids=["words", "protocol", "chunks", "no length", "too long", "long head"],
)
def test_what_is_none_of_its_http_ends_a_connection(sent: bytes) -> None:
    """Where a request ends nobody knows then."""
    with ScoringService(AT_ONCE) as service:
        assert exchange(service, sent).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_connection_takes_one_request_after_the_other() -> None:
    """Also where the second is sent before the first is answered; it is open as long as the client wants."""
    head = b"POST /score HTTP/1.1\r\nContent-Length: 2\r\n"
    with ScoringService(AT_ONCE) as service:
        found = exchange(service, head + b"\r\n[]" + head + b"connection: Close\r\n\r\n[]")
        assert found.count(b"HTTP/1.1 200 OK") == found.count(b"\r\n\r\n[]") == 2
        assert [found.count(each) for each in (b"Connection: keep-alive", b"Connection: close")] == [1, 1]
        assert exchange(service, b"GET /counts HTTP/1.0\r\n\r\n").count(b"Connection: close") == 1


def test_a_client_that_goes_leaves_the_service_to_others() -> None:
    """In the middle of a request, or before its answer."""
    call = b"POST /score HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]"
    with ScoringService(AT_ONCE) as service:
        for sent in (b"", call[:10], call[:-1], call):
            with socket.create_connection((service.host, service.port)) as line:
                line.sendall(sent)
        assert score(service).json() == []


def test_its_end_closes_all_connections() -> None:
    """One that is idle, and one that would wait for its answer for an hour; then nobody answers."""
    service = ScoringService(Manners(latency=3600.0))

    async def story() -> BaseException:
        async with httpx.AsyncClient(base_url=service.url, timeout=None) as client:
            await client.get("/counts")
            call = asyncio.create_task(client.post("/score", content=b"[]"))
            while not service.counts.calls:
                await asyncio.sleep(0)
            await asyncio.to_thread(service.stop)
            [failed] = await asyncio.gather(call, return_exceptions=True)
            return failed

    with service:
        assert isinstance(asyncio.run(story()), httpx.TransportError)
    with pytest.raises(httpx.ConnectError):
        score(service)


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """It can be taken again at once by the next, as after a fall."""
    with ScoringService(AT_ONCE) as first:
        with pytest.raises(OSError, match="in use"), ScoringService(AT_ONCE, port=first.port):
            pass
        with pytest.raises(SystemExit) as ended:
            serve(first.host, first.port)
        assert ended.value.code == SetupError.exit_code
        assert f"Nothing can listen on {first.host}:{first.port}" in capsys.readouterr().err
        score(first)
    with ScoringService(AT_ONCE, port=first.port) as second:
        assert score(second).json() == []


def test_the_command_serves_until_it_is_interrupted() -> None:
    """Its options are the settings."""
    command = [
        sys.executable,
        "-m",
        "seamline.local.scoring",
        "--port",
        "0",
        "--seed",
        "7",
        "--slow-for",
        "0.5",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().split()[-1]
            assert httpx.get(f"{url}/manners").json() == asdict(Manners(seed=7, slow_for=0.5))
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_the_command_refuses_a_setting_out_of_range() -> None:
    """As any option that cannot be."""
    with pytest.raises(click.UsageError, match="a share from 0 to 1"):
        serve("127.0.0.1", 0, slow=2.0)
