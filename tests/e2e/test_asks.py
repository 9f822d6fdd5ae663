"""Answers of another system for the rows of a real stream: what is killed, slow, wrong or away, each row has one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.rig.asked_shop import ANSWERS, PATIENCE, Shop, opened

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection


@pytest.fixture
def shop(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Shop]:
    with opened(tmp_path, tmp_path / "code", kafka) as made:
        yield made


@pytest.mark.faults
def test_rows_without_an_answer_are_asked_about_again_by_decision(shop: Shop) -> None:
    """Errors are recorded, keep no interval from being published, and a build makes no call."""
    shop.stack.start()
    shop.pay(60)
    shop.wait_for_answers()
    errors = {some[0]["scored_error"] for some in shop.answers().values()} - {None}
    assert errors == {"unknown", "risk is 'high', not INT"}
    assert shop.read_served() == shop.expect_served()
    assert set(shop.calls().values()) == {1}

    (shop.code / "mended").touch()
    told = shop.seamline("ask", "asked", "scored", "--only-errors", "--reason", "the system knows them now")
    assert "errors of" in told
    wrong = [id for id, some in shop.answers().items() if some[0]["scored_error"]]
    shop.stack.wait("answers", lambda: shop.read_served() == shop.expect_served(unknown=False), PATIENCE, 1)
    assert shop.calls() == Counter({id: 1 + (id in wrong) for id in shop.asked})
    assert {id: len(some) for id, some in shop.answers().items()} == {
        id: 1 + (id in wrong) for id in shop.asked
    }

    shop.seamline("drain", "asked", "--reason", "closed")
    shop.stack.wait("the end", lambda: "2024-01-02" in shop.stack.heartbeat()["watermark"], PATIENCE)
    assert shop.stack.stop() == 0
    shop.seamline("run", "asked", "--dirty")
    assert shop.read_served("batch") == shop.expect_served(unknown=False) == shop.read_served()
    assert sum(shop.calls().values()) == len(shop.asked) + len(wrong)


def test_a_system_that_is_away_keeps_its_rows_waiting_and_no_others(shop: Shop) -> None:
    away = shop.code / "away"
    away.touch()
    shop.stack.start()
    shop.pay(100)
    shop.stack.wait("payments", shop.has_read_payments, PATIENCE)
    shop.stack.wait("the alarm", lambda: shop.stack.heartbeat()["asks"]["scored"]["away"] > 0, PATIENCE)
    said = shop.stack.heartbeat()["asks"]["scored"]
    assert said["trouble"] == "ConnectionError: nobody is there"
    assert not shop.answers()
    assert {n for n, *_ in shop.read_served().values()} == {0}
    away.unlink()
    shop.wait_for_answers()
    assert {some[0]["scored_error"] for some in shop.answers().values()} == {
        None,
        "unknown",
        "risk is 'high', not INT",
    }
    assert shop.read_served() == shop.expect_served()
    assert shop.stack.stop() == 0


@pytest.mark.faults
def test_what_is_killed_asks_again_and_no_row_has_two_answers(shop: Shop) -> None:
    """The process that asks dies between answer and record, and between record and position; then the driver does."""
    for point in ("answered", "recorded"):
        shop.stack.start(SEAMLINE_FAIL=f"{point}:3:python")
        before = shop.count_ends()
        while shop.count_ends() < before + 2:
            shop.pay(4)
            shop.stack.wait("epochs", shop.has_read_payments, PATIENCE)
        shop.stack.kill()
    assert max(shop.calls().values()) > 1
    shop.stack.start(SEAMLINE_FAIL="master:4")
    assert shop.stack.driver
    while shop.stack.driver.poll() is None:
        shop.pay(10)
    shop.stack.start()
    shop.pay(20)
    shop.wait_for_answers()
    assert shop.stack.stop() == 0
    assert {id: len(some) for id, some in shop.answers().items()} == dict.fromkeys(shop.asked, 1)


@pytest.mark.faults
def test_a_topic_of_answers_that_is_created_again_is_never_silent(shop: Shop) -> None:
    """No start goes on before somebody accepts what is lost; what was read stays, the rest is asked by decision."""
    shop.stack.start()
    shop.pay(40)
    shop.wait_for_answers()
    assert shop.stack.stop() == 0
    shop.die_behind()
    with TopicAdmin(shop.kafka) as admin:
        admin.delete_topic(ANSWERS)
        admin.create_topic(ANSWERS, 2)
    shop.stack.start()
    assert shop.stack.driver
    assert shop.stack.driver.wait(PATIENCE) not in (0, None)
    assert "recreated" in shop.stack.log.read_text()
    shop.seamline("holes", "accept", "asked", "--reason", "made again")

    shop.stack.start()
    shop.pay(20)
    shop.stack.wait("payments", shop.has_read_payments, PATIENCE)
    shop.seamline("ask", "asked", "scored", "--reason", "the topic was created again")
    shop.wait_for_answers()
    assert shop.stack.stop() == 0
    assert max(shop.calls().values()) > 1, "nothing was lost"
    assert {some[0]["scored_error"] for some in shop.answers().values() if len(some) > 1} <= {
        "unknown",
        "risk is 'high', not INT",
    }
    assert shop.read_served() == shop.expect_served()


@pytest.mark.faults
def test_answers_that_are_passed_over_are_read_after_all(shop: Shop) -> None:
    """Each row keeps its one answer, whether it is asked about again, and whenever the payments are read, too."""
    shop.stack.start()
    shop.pay(40)
    shop.wait_for_answers()
    assert shop.stack.stop() == 0
    shop.die_behind()
    read = {row["id"] for row in shop.rows("payments")}
    waiting = read & {*shop.asked} - shop.answers().keys()
    assert waiting, "the stream has read all answers"
    shop.seamline("stream", "start", "asked", "--from", "latest", "--reason", "too far behind")

    shop.stack.start()
    shop.seamline("ask", "asked", "scored", "--reason", "some were passed over")
    shop.stack.wait("the answers", lambda: read & {*shop.asked} <= shop.answers().keys(), PATIENCE)
    shop.seamline("holes", "fill", "asked", "--reason", "the payments, too")
    shop.wait_for_answers()
    assert shop.stack.stop() == 0
    assert {
        id for id, some in shop.answers().items() if sum(not row["scored_error"] for row in some) > 1
    } == set()
    assert shop.read_served() == shop.expect_served()
