"""The client over a real server: what it reads is what the library reads."""

from __future__ import annotations

import io
import json
import threading
import urllib.error
from collections.abc import Iterator
from email.message import Message

import pyarrow as pa
import pytest
import uvicorn
from fastapi import FastAPI
from tests.dags.server import EVIL
from tests.ports import free_ports
from tests.unit.shop import Sale, Shop

from seamline.client import Client, Refused
from seamline.lake.read import streamed_answer
from seamline.model.errors import BadRange, NotFound, ReadUnstable
from seamline.serve.read import read
from seamline.web.answers import downloads
from seamline.web.app import app


@pytest.fixture
def reader(client) -> Iterator[Client]:
    """Serve the application on a port."""
    main = FastAPI()
    main.mount("/seamline", app)
    port = free_ports()
    server = uvicorn.Server(
        uvicorn.Config(main, port=port, log_level="error", lifespan="off", loop="asyncio")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive()
    yield Client(f"http://127.0.0.1:{port}", token="any")
    server.should_exit = True
    thread.join()


def test_it_reads_what_the_library_reads(reader: Client) -> None:
    """Types and all; a part of it by keys that are strange or NULL."""
    whole = read("shop.sales")
    assert reader.read("shop.sales").equals(whole)
    assert reader.read("shop.sales", format="pandas").equals(whole.to_pandas())
    found = reader.read("shop.sales", where={"customer": [EVIL, None]}, start="2013-01-01", side="merged")
    assert sorted(found["total"].to_pylist()) == [3, 5]
    assert reader.read("shop.sales", where={"customer": {"a"}}, end="2013-01-02").num_rows == 1


def test_a_large_answer_comes_in_batches_of_one_state(reader: Client, shop: Shop, monkeypatch) -> None:
    """An epoch that comes between two of them is in none."""
    before = read("shop.sales")
    monkeypatch.setattr(streamed_answer, "ROWS", 1)
    found = reader.batches("shop.sales")
    assert found.schema.metadata[b"seamline.epoch"] == b"0"
    first = found.read_next_batch()
    shop.epoch([Sale(5, "b", 1)])
    rest = list(found)
    assert [each.num_rows for each in [first, *rest]] == [1] * 4
    assert pa.Table.from_batches([first, *rest]).replace_schema_metadata().equals(before)
    assert reader.read("shop.sales").equals(read("shop.sales"))


def test_an_answer_that_is_broken_off_is_none(reader: Client, monkeypatch) -> None:
    """Half an answer would look like a whole one with fewer rows."""
    monkeypatch.setattr(streamed_answer, "ROWS", 1)
    whole = downloads.encode_answer_stream

    def broken(*asked):
        for number, piece in enumerate(whole(*asked)):
            if number == 2:
                raise ReadUnstable("a file is gone")
            yield piece

    monkeypatch.setattr(downloads, "encode_answer_stream", broken)
    with pytest.raises(Refused, match="broke the answer off"):
        reader.read("shop.sales")
    monkeypatch.setattr(downloads, "encode_answer_stream", whole)
    assert [reader.read("shop.sales").num_rows for _ in range(2 * downloads.AT_ONCE)] == [
        4
    ] * 2 * downloads.AT_ONCE


@pytest.mark.parametrize("sent", [b"", b"<html>a proxy's page</html>" * 9, downloads.BROKEN_ARROW])
def test_what_is_no_answer_is_refused(monkeypatch, sent: bytes) -> None:
    """A download that ends before its schema, or that a proxy answers; nobody stays connected."""
    body = io.BytesIO(sent)
    monkeypatch.setattr(Client, "sent", lambda *_, **__: ({}, body))
    with pytest.raises(Refused, match="broke the answer off"):
        Client("http://airflow", token="any").batches("shop.sales")
    assert body.closed


def test_an_answer_that_was_read_lets_the_server_go(monkeypatch) -> None:
    """Also where its reader is kept."""
    table, body = pa.table({"n": [1, 2]}), io.BytesIO()
    with pa.ipc.new_stream(body, table.schema) as writer:
        writer.write_table(table)
    body.seek(0)
    monkeypatch.setattr(Client, "sent", lambda *_, **__: ({}, body))
    reader = Client("http://airflow", token="any").batches("shop.sales")
    assert reader.read_all() == table
    assert body.closed


def test_an_answer_that_is_broken_off_and_ended_is_none_either(client: object) -> None:
    """Airflow has middlewares that end what was broken off: the last bytes say so."""
    table = pa.table({"n": [1, 2]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
        sent = sink.getvalue()
    assert pa.ipc.open_stream(sent).read_all() == table
    with pytest.raises((OSError, pa.ArrowInvalid)):
        pa.ipc.open_stream(sent + downloads.spoil_end("arrow", ReadUnstable("gone"))).read_all()
    assert json.loads(downloads.spoil_end("json", ReadUnstable("gone"))) == {
        "broken_off": "ReadUnstable: gone"
    }
    assert downloads.spoil_end("csv", ReadUnstable("a\nb")) == b"BROKEN OFF: ReadUnstable: a b\n"


def test_it_raises_what_the_library_raises(reader: Client) -> None:
    """By the same names, with the way out."""
    with pytest.raises(NotFound, match="no view"):
        reader.read("shop.sails")
    with pytest.raises(BadRange, match="no key 'total'"):
        reader.read("shop.sales", where={"total": 1})
    with pytest.raises(BadRange, match="is empty"):
        reader.read("shop.sales", where={"customer": []})
    with pytest.raises(BadRange, match="not a format"):
        reader.read("shop.sales", format="json")
    with pytest.raises(Refused, match="does not answer"):
        Client("http://127.0.0.1:1", token="any").read("shop.sales")


def test_a_token_that_has_run_out_is_fetched_again(reader: Client, monkeypatch) -> None:
    """Once, where there is a login; else the refusal is told."""
    sent, logins = Client.sent, []

    def strict(self, path, body=None, **more):
        if path == "/auth/token":
            logins.append(path)
            return {}, b'{"access_token": "new"}'
        if self.token != "new":
            raise urllib.error.HTTPError(path, 401, "", Message(), io.BytesIO(b'{"detail": "Token Expired"}'))
        return sent(self, path, body, **more)

    monkeypatch.setattr(Client, "sent", strict)
    reader.user = "ada"
    assert reader.read("shop.sales").num_rows == 4
    assert len(logins) == 1
    with pytest.raises(Refused, match="401"):
        Client(reader.url, token="old").read("shop.sales")
