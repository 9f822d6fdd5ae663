"""What a full disk and an absent store are called, whoever met them."""

from __future__ import annotations

import pytest
from deltalake.exceptions import DeltaError

from seamline.model.errors import DiskFull, FenceLost, SeamlineError, StoreRefused, StoreUnavailable
from seamline.runtime.storage_failures import explain_storage_failure, translate_store_errors

ENTRY = "http://store/lake/master/_delta_log/00000000000000000000.json"
IN_THE_WAY = "Object at location lake/x already exists: Error performing"
"""What a client makes of 409, by which a store says that another request is in the way."""
REFUSED = "Generic S3 error: Error performing GET http://store/lake/x in 2ms - non-2xx status code:"
"""What it makes of an answer that will be the same until somebody changes something."""
LONG = "\n    \x1b[31m↳\x1b[0m"
"""How it goes on in a long description."""


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (OSError(28, "No space left on device"), DiskFull),
        (RuntimeError("Generic error: ... (os error 28)"), DiskFull),
        (StoreUnavailable("timed out"), StoreUnavailable),
        (OSError("Generic S3 error: Error performing GET http://store/lake in 6s"), StoreUnavailable),
        (OSError(f"{REFUSED} 403 Forbidden: "), StoreRefused),
        (DeltaError(f"{REFUSED} 403 Forbidden: <Error><Code>ExpiredToken</Code></Error>"), StoreRefused),
        (DeltaError(f"{REFUSED} 503 Service Unavailable: <Code>SlowDown</Code>"), StoreUnavailable),
        (
            OSError("Generic S3 error: Error performing GET http://169.254.169.254/latest in 1s"),
            StoreUnavailable,
        ),
        (DeltaError(f"Generic error: Kernel error: {IN_THE_WAY} GET {ENTRY} in 2ms - 409"), StoreUnavailable),
        (OSError(f"Kernel error -> {IN_THE_WAY} GET {ENTRY} in 2ms".replace(":", LONG, 1)), StoreUnavailable),
        (DeltaError(f"Generic error: {IN_THE_WAY} PUT {ENTRY} in 2ms - 409"), None),
        (ValueError("cannot parse 'Generic S3 error' as a number"), None),
        (
            RuntimeError("a\n\nseamline.model.errors.StoreUnavailable: timed out"),
            StoreUnavailable,
        ),
        (RuntimeError("StoreUnavailable: the shop's store is shut"), None),
        (OSError(5, "Input/output error"), None),
        (FenceLost("token 2 has replaced ours, 1"), None),
    ],
)
def test_a_failure_of_what_keeps_the_tables_is_recognized(
    error: Exception, ours: type[SeamlineError] | None
) -> None:
    """And nothing else is: a stream waits for these, and for a defect it must not."""
    found = explain_storage_failure(error)
    assert (type(found) if found else None) is ours


def test_a_refusal_is_told_with_its_way_out_and_without_what_was_answered() -> None:
    """A stream that waited for it would wait for ever, and say that the store does not answer."""
    raised = OSError(
        f"{REFUSED} 403 Forbidden: <Error><Code>AccessDenied</Code><Token>secret</Token></Error>"
    )
    found = explain_storage_failure(raised)
    assert found and found.message == "The credentials for http://store/lake may not read objects there."
    assert "s3:GetObject" in found.hint and "secret" not in str(found)
    with pytest.raises(StoreRefused), translate_store_errors():
        raise raised


def test_what_was_raised_from_it_is_it_unless_it_has_a_name_of_ours() -> None:
    """A fence that was lost stays lost, whatever was in its way."""
    for raised, found in (
        (RuntimeError("no table"), StoreUnavailable),
        (FenceLost("token 2 has replaced ours, 1"), FenceLost),
    ):
        with pytest.raises(found), translate_store_errors():
            raise raised from StoreUnavailable("timed out")


def test_an_error_that_was_raised_from_itself_has_an_end() -> None:
    """As one is that is caught and raised again by whoever adds what he knows."""
    error = RuntimeError("boom")
    error.__cause__ = error
    assert explain_storage_failure(error) is None


def test_the_line_that_says_it_is_repeated() -> None:
    """The rest is a trace of Java's or Python's."""
    found = explain_storage_failure(
        RuntimeError(
            "Job aborted.\n\n  Caused by: seamline.model.errors.StoreUnavailable: timed out\n\tat x.y"
        )
    )
    assert found and found.message.endswith(
        "it is asked: Caused by: seamline.model.errors.StoreUnavailable: timed out"
    )
