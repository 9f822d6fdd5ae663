"""A question to a view means the same however it is asked, and one that cannot be meant says what is wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from seamline import client
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Phase, Side

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_texts_and_values_ask_the_same() -> None:
    """A command line has texts, a program has values."""
    texts = ReadRequest.parse("k = 1", start="2026-03-01", end="2026-03-01T12:00Z", as_of="7", side="speed")
    values = ReadRequest.parse("k = 1", start=date(2026, 3, 1), end=NOON, as_of=7, side=Side.SPEED)
    assert texts == values == ReadRequest("k = 1", NOON.replace(hour=0), NOON, 7, side=Side.SPEED)
    assert ReadRequest.parse(as_of="2026-03-01T12:00") == ReadRequest(as_of=NOON)
    assert (
        ReadRequest.parse(phases="late")
        == ReadRequest.parse(phases=["late"])
        == ReadRequest(phases=(Phase.LATE,))
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": "2026-03-02", "end": "2026-03-01"}, "2026-03-02"),
        ({"start": ""}, "''"),
        ({"as_of": "soon"}, "'soon'"),
        ({"as_of": 3, "served_at": "2026-03-01"}, "cannot be combined"),
        ({"side": "left"}, "(?s)'left' is not a side.*merged, batch or speed"),
        ({"phases": ["late", "later"]}, "(?s)'later' is not a phase.*early, complete or late"),
    ],
)
def test_a_question_without_an_answer_says_why(options: dict[str, Any], says: str) -> None:
    """Each names what was given, and what would do."""
    with pytest.raises(BadRange, match=says):
        ReadRequest.parse(**options)


def test_an_option_that_does_not_exist_is_refused() -> None:
    """A typing error would ask for everything."""
    wrong: Any = {"beginning": "2026-03-01"}
    with pytest.raises(TypeError, match="no option 'beginning'.*start, end"):
        ReadRequest.parse(**wrong)
    with pytest.raises(TypeError, match="no option 'beginning'"):
        client.Client("http://127.0.0.1:1").read("shop.sales", **wrong)


def test_a_client_sends_what_was_asked() -> None:
    """The server reads it as the command line's options."""
    assert client.list_option_parameters({"start": ""}) == [("start", "")], (
        "the server refuses it, as read does"
    )
    sent = client.list_option_parameters(
        {"start": NOON, "as_of": 0, "side": "batch", "version": "", "phases": "late"}
    )
    assert sent == [("start", "2026-03-01T12:00:00Z"), ("as_of", "0"), ("side", "batch"), ("phase", "late")]
