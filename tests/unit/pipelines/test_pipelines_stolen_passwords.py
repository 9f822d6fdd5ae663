"""The shipped pipeline `stolen_passwords`, with answers computed by hand."""

from __future__ import annotations

from tests.unit.examples import declared

STOLEN = declared("stolen_passwords")
HOUR = "2026-03-01T09:00:00Z"


def login(account, at, *, ok=False, country="DE"):
    return {"account": account, "country": country, "ok": ok, "at": f"2026-03-01T{at}Z"}


def seen(story, side="merged"):
    return {
        (row["country"], f"{row['window_start']:%H:%M}"): (row["accounts"], row["tries"])
        for row in story.answer("by_country", side)
    }


def morning(scenario):
    """The logins of the page, in two epochs."""
    story = scenario(STOLEN, now="2026-03-02")
    story.send(
        login("ada", "09:00:00"), login("ada", "09:00:10"), login("bob", "09:01:00"), login("ada", "09:02:00")
    )
    story.epoch()
    story.send(login("ada", "09:03:00", ok=True, country="FR"), login("bob", "09:04:00", ok=True))
    story.epoch()
    return story


def test_a_right_password_after_three_wrong_ones_is_found_at_once(scenario):
    """No other login can belong to it; Bob has forgotten his only once."""
    story = morning(scenario)
    assert seen(story) == {("FR", "09:00"): (1, 3)}
    [row] = story.answer("accounts")
    assert (row["account"], f"{row['since']:%H:%M:%S}", row["tries"]) == ("ada", "09:00:00", 3)


def test_a_late_login_withdraws_what_is_none(scenario):
    """Ada had the right password in between; her neighbours' mistakes are nobody's."""
    story = morning(scenario)
    story.send(login("ada", "09:01:30", ok=True))
    story.epoch()
    assert seen(story) == {}
    story.send(login("bob", "09:01:30"), login("bob", "09:02:30"))
    story.epoch()
    assert seen(story) == {("DE", "09:00"): (1, 3)}


def test_nobody_tries_for_longer_than_ten_minutes(scenario):
    """Three of the last ten minutes are enough, and four are more; what is closed is built."""
    story = scenario(STOLEN, now="2026-03-02")
    story.send(*(login("ada", f"09:{minute:02d}:00") for minute in (0, 10, 12, 14)))
    story.send(login("ada", "09:20:00", ok=True, country="JP"))
    story.epoch()
    assert seen(story) == {("JP", "09:00"): (1, 3)}
    story.send(login("zoe", "10:02:00"))
    story.epoch()
    assert story.batch() == [HOUR]
    assert seen(story, "batch") == {("JP", "09:00"): (1, 3)}
