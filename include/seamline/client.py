"""Reads views over HTTP, with what the standard library and pyarrow have: no tables, no Airflow, no Spark beside it.

>>> client = Client("http://airflow:8080", user="ada", password="...")
>>> table = client.read("orders.by_customer", where={"customer": ["ada", None]}, start="2026-03-01")
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, Unpack, overload

import pyarrow as pa

from seamline.model.errors import BadRange, ExpressionError, NotFound, ReadUnstable, SeamlineError, TooSlow
from seamline.model.protocol.read_request import ReadOptions, require_known_options
from seamline.model.time.intervals import format_utc_instant

ERRORS: Mapping[str, type[SeamlineError]] = {
    each.__name__: each for each in (BadRange, ExpressionError, NotFound, ReadUnstable, TooSlow)
}
Key = str | int | Decimal | bool | date | None


class Refused(SeamlineError):
    """The server did not answer, or would not."""

    exit_code = 47


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: the token is for this server alone."""

    def redirect_request(self, *_: Any) -> None:
        """Take a redirection for what it is: no answer."""


OPENER = urllib.request.build_opener(Stay)


@dataclass
class Client:
    """One server and a login, or a token of Airflow's REST API; a token is fetched when first needed."""

    url: str
    """The server, as ``https://host:8080``, with the prefix that it is served below."""
    user: str = ""
    """The login; empty with a token."""
    password: str = field(default="", repr=False)
    """Of the login."""
    token: str = field(default="", repr=False)
    """Fetched with the login when first needed where it is empty."""
    timeout: float = 60.0
    """Seconds that a request may take."""

    @overload
    def read(
        self,
        view: str,
        where: Mapping[str, Key | Iterable[Key]] | None = ...,
        *,
        format: Literal["arrow"] = ...,
        **options: Unpack[ReadOptions],
    ) -> pa.Table: ...
    @overload
    def read(
        self,
        view: str,
        where: Mapping[str, Key | Iterable[Key]] | None = ...,
        *,
        format: Literal["pandas"],
        **options: Unpack[ReadOptions],
    ) -> Any: ...

    def read(
        self,
        view: str,
        where: Mapping[str, Key | Iterable[Key]] | None = None,
        *,
        format: str = "arrow",
        **options: Unpack[ReadOptions],
    ) -> Any:
        """
        Answer for ``PIPELINE.VIEW`` as ``seamline.read`` does: one row per key and window that starts in the range.

        ``where`` maps a key to its value, or to several of which any will do; None is a key that is NULL. There is no
        SQL over HTTP. All rows are of one state of the tables. Raises what ``seamline.read`` raises, and Refused.
        """
        if format not in ("arrow", "pandas"):
            raise BadRange(f"{format!r} is not a format.", hint='use "arrow" or "pandas".')
        table = self.batches(view, where, **options).read_all().replace_schema_metadata()
        return table if format == "arrow" else table.to_pandas()

    def batches(
        self,
        view: str,
        where: Mapping[str, Key | Iterable[Key]] | None = None,
        **options: Unpack[ReadOptions],
    ) -> pa.RecordBatchReader:
        """Read an answer of any size batch by batch, as the server makes it; takes and raises what ``read`` does.

        The batches' metadata says of which state of the tables they are. Refused where the answer is broken off.
        """
        pipeline, _, name = view.partition(".")
        path = f"views/{urllib.parse.quote(pipeline, safe='')}/{urllib.parse.quote(name, safe='')}/rows"
        query = [*list_option_parameters(options), *build_key_parameters(where or {}), ("format", "arrow")]
        _, answer = self.get(path, query, whole=False)
        try:
            with self.receiving():
                reader = pa.ipc.open_stream(pa.PythonFile(answer, "r"))
        except BaseException:
            answer.close()
            raise
        return pa.RecordBatchReader.from_batches(reader.schema, self.received(reader, answer))

    def received(self, reader: pa.RecordBatchReader, answer: Any) -> Iterator[pa.RecordBatch]:
        """Give what comes, and let the server go; Refused where it ends too early."""
        with answer, self.receiving():
            yield from reader

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """Refuse an answer that ends too early."""
        try:
            yield
        except (OSError, http.client.HTTPException, pa.ArrowInvalid) as error:
            raise Refused(
                f"{self.url} broke the answer off: {error}.", hint="read again; the server's log says why."
            ) from None

    def get(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, whole: bool = True
    ) -> tuple[Mapping[str, str], Any]:
        """Ask for something below ``/seamline/api/v1``; its headers and its body, or the body to be read."""
        if not self.token and self.user:
            self.log_in()
        address = f"/seamline/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            return self.sent(address, whole=whole)
        except urllib.error.HTTPError as error:
            if error.code != 401 or not self.user:
                raise parse_server_error(error) from None
        # The token has run out.
        self.token = ""
        self.log_in()
        try:
            return self.sent(address, whole=whole)
        except urllib.error.HTTPError as error:
            raise parse_server_error(error) from None

    def log_in(self) -> None:
        """Fetch a token; Refused with the server's word."""
        try:
            body = json.dumps({"username": self.user, "password": self.password}).encode()
            self.token = str(json.loads(self.sent("/auth/token", body)[1])["access_token"])
        except urllib.error.HTTPError as error:
            raise parse_server_error(error) from None

    def sent(
        self, path: str, body: bytes | None = None, *, whole: bool = True
    ) -> tuple[Mapping[str, str], Any]:
        """Send one request; Refused when nobody answers."""
        headers = {"Content-Type": "application/json"} if body else {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url.rstrip("/") + path, data=body, headers=headers)
        try:
            answer = OPENER.open(request, timeout=self.timeout)
            if not whole:
                return answer.headers, answer
            with answer:
                return answer.headers, answer.read()
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise Refused(
                f"{self.url} does not answer: {error}.", hint="check that Airflow's API server is running."
            ) from None


def build_key_parameters(where: Mapping[str, Key | Iterable[Key]]) -> list[tuple[str, str]]:
    """Write what the keys may be; BadRange where a key may be nothing, which would be no condition at all."""
    found = []
    for name, given in where.items():
        values = (
            list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
        )
        if not values:
            raise BadRange(
                f"where: the list of values for {name!r} is empty.", hint="leave it out to select all values."
            )
        found += [
            ("null", name) if value is None else (f"key.{name}", format_parameter(value)) for value in values
        ]
    return found


def list_option_parameters(options: ReadOptions) -> list[tuple[str, str]]:
    """Write the options of a read as the API takes them; TypeError for one that does not exist."""
    require_known_options(options)
    phases = options.get("phases") or ()
    single = [
        (name, format_parameter(value))
        for name, value in options.items()
        if name != "phases" and value is not None and (name, value) != ("version", "")
    ]
    return [*single, *(("phase", each) for each in ([phases] if isinstance(phases, str) else phases))]


def format_parameter(value: object) -> str:
    """Write a value as the API takes it."""
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return format_utc_instant(value) if value.tzinfo else value.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)


def parse_server_error(error: urllib.error.HTTPError) -> SeamlineError:
    """Return the error that the server names."""
    with error:
        text = error.read().decode(errors="replace")
    try:
        said = json.loads(text)
        kind = ERRORS.get(str(said["error"]), Refused)
        return kind(str(said["message"]), hint=str(said["hint"]))
    except (ValueError, KeyError, TypeError):
        return Refused(
            f"The server answered {error.code}: {text[:300]}", hint="check the address and the login."
        )
