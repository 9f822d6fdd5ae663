"""A store that refuses says so in a sentence with a way out, whoever asked, and with no secret in it."""

from __future__ import annotations

import logging
import traceback
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from tests.faults.rig.store_proxy import StoreProxy, describe_refusal
from tests.unit.shop import DEFINITION

from seamline.cli import main
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store import bucket as buckets
from seamline.lake.store.explained_errors import explain_errors
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.tables.table_format import require_format
from seamline.model.errors import SetupError, StoreRefused, StoreUnavailable
from seamline.runtime.store_refusals import explain_failure
from seamline.runtime.store_settings import list_refusals, name_endpoint

SCHEMA = pa.schema([("n", pa.int64())])
TOKEN = "token-that-nobody-may-see"
PAGE = "<!DOCTYPE html><html><body>Welcome to the console</body></html>"
REFUSALS = {
    "no bucket": (404, describe_refusal("NoSuchBucket"), "There is no bucket s3://", "create it"),
    "no right": (403, describe_refusal("AccessDenied"), "may not", "s3:ListBucket"),
    "no reason": (403, "", "may not", "s3:ListBucket"),
    "another key": (403, describe_refusal("InvalidAccessKeyId"), "does not know the key", "AWS_ACCESS_KEY_ID"),
    "another secret": (403, describe_refusal("SignatureDoesNotMatch"), "secret key", "AWS_SECRET_ACCESS_KEY"),
    "expired": (400, describe_refusal("ExpiredToken", Token=TOKEN), "have expired", "AWS_SESSION_TOKEN"),
    "a clock": (
        403,
        describe_refusal("RequestTimeTooSkewed", ServerTime="2031-02-03T04:05:06Z"),
        "where it is 2031-02-03T04:05:06Z",
        "NTP",
    ),
    "elsewhere": (301, describe_refusal("PermanentRedirect"), "not in the region us-east-1", "AWS_REGION"),
    "elsewhere, signed": (
        400,
        describe_refusal("AuthorizationHeaderMalformed", Region="eu-west-3"),
        "not in the region us-east-1, but in eu-west-3",
        "AWS_REGION",
    ),
    "a page": (200, PAGE, "does not speak S3", "AWS_ENDPOINT_URL"),
    "no such page": (404, PAGE, "does not speak S3", "AWS_ENDPOINT_URL"),
    "another method": (405, PAGE, "does not speak S3", "AWS_ENDPOINT_URL"),
}  # fmt: skip


def show_logged(error: BaseException, caplog: pytest.LogCaptureFixture) -> str:
    """Return all that a log has of an error."""
    return "".join(traceback.format_exception(error)) + caplog.text


@pytest.mark.slow
def test_whoever_uses_a_warehouse_is_told_the_same(
    shaky: Location, proxy: StoreProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """Commands begin with the tables' format; writers make a table, or commit to one that was open before."""
    table = Table.ensure(shaky / "t", SCHEMA)
    file = write_data_file(pa.table({"n": [1]}, SCHEMA), shaky / "t", "1.parquet")
    deeds = {
        "open": lambda: require_format(Layout(shaky, "orders")),
        "make": lambda: Table.ensure(shaky / "new", SCHEMA),
        "commit": lambda: table.append([file]),
        "list": lambda: list((shaky / "t").iterdir()),
        "put": lambda: (shaky / "x").write_bytes(b"x"),
        "delete": lambda: (shaky / "x").unlink(),
    }
    with caplog.at_level(logging.DEBUG):
        for case, (status, body, fact, hint) in REFUSALS.items():
            proxy.clear()
            proxy.answer(status, body)
            for name, deed in deeds.items():
                if (case, name) == ("a page", "list"):
                    # It cannot be told from a listing of nothing.
                    continue
                with pytest.raises(StoreRefused) as refused:
                    deed()
                assert fact in refused.value.message, (case, name)
                assert hint in refused.value.hint, (case, name)
                said = show_logged(refused.value, caplog)
                assert TOKEN not in said and "<Error>" not in said, (case, name)
    proxy.clear()
    table.append([file])
    assert Table.open(shaky / "t").read()["n"].to_pylist() == [1]


@pytest.mark.slow
def test_commands_end_with_that_sentence(
    shaky: Location,
    proxy: StoreProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Doctor says it once, and goes on to what else lacks."""
    (tmp_path / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    proxy.answer(*REFUSALS["expired"][:2])
    for command in ("query shop.sales", "stream start shop", "plan shop", "upkeep shop"):
        assert main(command.split()) == StoreRefused.exit_code
        assert "have expired" in capsys.readouterr().err
    assert main(["doctor", "--no-airflow"]) == SetupError.exit_code
    printed = capsys.readouterr()
    assert printed.out.count("have expired") == 1 and "shop" in printed.out
    assert TOKEN not in printed.out + printed.err


@pytest.mark.slow
def test_a_bucket_that_can_only_be_read_is_named_by_who_writes(shaky: Location, proxy: StoreProxy) -> None:
    """Readers go on."""
    table = Table.ensure(shaky / "t", SCHEMA)
    file = write_data_file(pa.table({"n": [1]}, SCHEMA), shaky / "t", "1.parquet")
    proxy.answer(403, describe_refusal("AccessDenied"), method="PUT|POST")
    assert Table.open(shaky / "t").read().num_rows == 0
    for deed in (lambda: table.append([file]), lambda: Table.ensure(shaky / "new", SCHEMA)):
        with pytest.raises(StoreRefused, match="may not write objects"):
            deed()


@pytest.mark.slow
def test_a_store_that_is_busy_or_gone_may_come_back(
    shaky: Location, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no refusal: whoever waits for a broker waits for it, too. A gateway's page says nothing of the store."""
    monkeypatch.setattr(buckets, "PATIENCE", timedelta(seconds=0.1))
    buckets.open_bucket.cache_clear()
    for status, body in ((503, describe_refusal("SlowDown")), (502, PAGE)):
        proxy.answer(status, body)
        with pytest.raises(StoreUnavailable, match=f"{proxy.url} did not do what it was asked for") as away:
            (shaky / "x").write_bytes(b"x")
        assert "<" not in str(away.value)
        proxy.clear()
    (shaky / "x").write_bytes(b"x")


def test_what_nobody_can_ask_a_test_server_for_is_told_apart_too() -> None:
    """The client's own words where a request was not sent."""
    env = {"AWS_ENDPOINT_URL": "https://me:secret@store.example:9000/x"}
    for words, fact in {
        "Error performing PUT http://169.254.169.254/latest/api/token in 3s - HTTP error": "There are no credentials",
        "Error performing POST https://sts.eu.amazonaws.com/ - code: 403 Forbidden: <Error>": "does not give the role",
        "DeleteObjects request failed for key a: Access Denied (code: AccessDenied)": "may not",
        "code: 501 Not Implemented: <Error><Code>NotImplemented</Code>": "does not support a request",
        "code: 400 Bad Request: <Code>InvalidRequest</Code>Content-MD5 OR x-amz-checksum-": "locks each object",
        "code: 400 Bad Request: <Code>KMS.DisabledException</Code>": "The key that encrypts",
    }.items():
        error = explain_failure("s3://lake", OSError(words), env)
        assert isinstance(error, StoreRefused) and fact in str(error), words
        assert "secret" not in str(error)
    busy = explain_failure("s3://lake", OSError("code: 400 Bad Request: <Code>RequestTimeout</Code>"), env)
    assert isinstance(busy, StoreUnavailable) and "(RequestTimeout)" in str(busy)
    assert name_endpoint(env) == "https://store.example:9000" and name_endpoint({}) == "s3.amazonaws.com"


@pytest.mark.parametrize(
    ("env", "fact"),
    [
        ({"AWS_ENDPOINT_URL": "store.example:9000"}, "AWS_ENDPOINT_URL is not the address of a store"),
        ({"AWS_ENDPOINT_URL": "https://store.example:secret"}, "AWS_ENDPOINT_URL is not the address of a store"),
        ({"AWS_ENDPOINT_URL": "https://key:secret@store.example"}, "AWS_ENDPOINT_URL has a user in it"),
        ({"AWS_ENDPOINT_URL": "http://store.example"}, "begins with http://"),
        ({"AWS_ACCESS_KEY_ID": "key"}, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"),
        ({"AWS_SECRET_ACCESS_KEY": "secret"}, "AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": __file__}, "AWS_ROLE_ARN is not"),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/not/there", "AWS_ROLE_ARN": "r"}, "/not/there"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_right_are_refused_before_a_request(env: dict[str, str], fact: str) -> None:
    """Some of them would end the client in a panic, others in minutes of retries."""
    [refusal] = list_refusals("s3://lake", env)
    assert fact in refusal.message and refusal.hint
    assert "secret" not in str(refusal).replace("AWS_SECRET", "")


def test_settings_that_can_be_right_are_not_refused(tmp_path: Path) -> None:
    """Whether they are is the store's to say."""
    file = tmp_path / "token"
    file.write_text("t")
    role = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(file), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}
    local = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_ALLOW_HTTP": "TRUE"}
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    for env in ({}, role, local, keys, {**keys, "AWS_WEB_IDENTITY_TOKEN_FILE": "/not/there"}):
        assert not list(list_refusals("s3://lake", env))


@pytest.mark.parametrize(
    "text", ["s3://", "s3:///lake", "s3://the lake/x", "s3://lake/the lake", "s4://lake"]
)
def test_a_place_that_is_none_is_refused(text: str) -> None:
    """A space is found under another name by deltalake."""
    with pytest.raises(SetupError):
        parse_location(text)


@pytest.mark.parametrize(
    "said",
    [
        "Error performing GET http://169.254.169.254/latest/api/token in 1s - 503 Service Unavailable",
        "Error performing POST https://sts.amazonaws.com - code: 400 Bad Request",
    ],
)
def test_a_role_that_has_worked_may_work_again(said: str) -> None:
    """A machine's own service has its moments: no stream ends by one."""
    assert isinstance(explain_failure("s3://lake", OSError(said), {}), StoreRefused)
    assert isinstance(explain_failure("s3://lake", OSError(said), {}, answered=True), StoreUnavailable)


@pytest.mark.parametrize(("answered", "told"), [(False, StoreRefused), (True, StoreUnavailable)])
def test_a_role_that_has_worked_may_work_again_for_deltalake_too(
    answered: bool, told: type[OSError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests ask the same service as ours."""
    monkeypatch.setattr(parse_location("s3://lake/t").bucket, "answered", answered)
    said = "Generic S3 error: Error performing GET http://169.254.169.254/latest/api/token in 1s"
    with pytest.raises(told), explain_errors(parse_location("s3://lake/t")):
        raise OSError(said)
