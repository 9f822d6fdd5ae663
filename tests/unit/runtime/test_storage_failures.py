"""What a full disk and an absent store are called, whoever met them."""

from __future__ import annotations

import pytest

from seamline.model.errors import DiskFull, FenceLost, SeamlineError, StoreUnavailable
from seamline.runtime.storage_failures import explain_storage_failure, translate_store_errors


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (OSError(28, "No space left on device"), DiskFull),
        (RuntimeError("Generic error: ... (os error 28)"), DiskFull),
        (StoreUnavailable("timed out"), StoreUnavailable),
        (OSError("Generic S3 error: Error performing GET http://store/lake in 6s"), StoreUnavailable),
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
