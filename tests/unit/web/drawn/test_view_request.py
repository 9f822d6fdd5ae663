"""The address of a view's page: who is given it sees the same."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import BadRange
from seamline.web.drawn.view_request import CHOICES, LONGEST_KEY, TEXTS, ViewRequest

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    chosen=st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(some) for name, some in CHOICES.items()}
    ),
    texts=st.fixed_dictionaries({}, optional=dict.fromkeys(TEXTS, WORDS)),
    keys=st.dictionaries(WORDS, st.lists(WORDS.filter(bool), min_size=1), max_size=2),
)
def test_an_address_says_all_that_is_drawn(chosen: dict, texts: dict, keys: dict) -> None:
    """What was read of an address is read of the one that is written again; pages begin anew."""
    asked = ViewRequest(**chosen, **texts, keys=keys, page=3, offset=100)
    text = asked.address(page=3, offset=100).removeprefix("?")
    assert ViewRequest.of(parse_qsl(text, keep_blank_values=True)) == asked
    again = ViewRequest.of(parse_qsl(asked.address()[1:], keep_blank_values=True))
    assert (again.page, again.offset) == (0, 0)


def test_what_cannot_be_meant_is_left_out() -> None:
    """An address that somebody wrote by hand opens, too."""
    given = [("draw", "pie"), ("page", "-1"), ("scale", ""), ("other", "x"), ("who", "me")]
    assert ViewRequest.of(given) == ViewRequest(other="x")


@pytest.mark.parametrize("name", [*TEXTS, "key.customer"])
def test_what_is_too_long_is_refused(name: str) -> None:
    """Cut off, it was another value: a page showed the rows of another key, or none, and did not say so."""
    longest = TEXTS.get(name, LONGEST_KEY)
    ViewRequest.of([(name, "x" * longest)])
    with pytest.raises(BadRange, match=f"{name} has {longest + 1:,} characters"):
        ViewRequest.of([(name, "x" * (longest + 1))])
