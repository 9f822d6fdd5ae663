"""A look-up of joined rows is corrected while the stream runs: no answer is of both, and later rows find the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from tests.e2e.joined_oracle import LATE, Held
from tests.e2e.joined_world import Example, eventually

from seamline.kafka.connections import KafkaConnection
from seamline.supervisor.outside import stop_stream

pytestmark = pytest.mark.faults
NAME = "ad_attribution"
BUILT = ("2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z")
SHOWN = "examples.impressions"
LOOKUP = """lookups=[Lookup("teams", "teams.csv", on={"campaign": "campaign"}, columns=["team STRING"])],
            where="teams_team IS NULL OR teams_team <> 'internal'",
            rules=[Rule("no negative cost", "cost_micros >= 0")],"""


@pytest.fixture
def example(kafka: KafkaConnection, tmp_path: Path) -> Iterator[Example]:
    """Have the topics, and a definition whose impressions of internal teams are left out; nobody is internal yet."""
    made = Example(tmp_path, kafka, NAME, BUILT)
    file = made.definitions / f"{NAME}.py"
    text = file.read_text().replace("    Join,\n", "    Join,\n    Lookup,\n")
    file.write_text(text.replace('rules=[Rule("no negative cost", "cost_micros >= 0")],', LOOKUP))
    correct(made, None)
    with made.at_work():
        yield made


def correct(example: Example, internal: int | None) -> None:
    """Write the table of teams."""
    rows = [f"{campaign},{'internal' if campaign == internal else 'sales'}" for campaign in range(1000)]
    new = example.definitions / "new.csv"
    new.write_text("\n".join(["campaign,team", *rows]))
    new.replace(example.definitions / "teams.csv")


def without(held: Held, campaign: int) -> Held:
    """Leave out the impressions of a campaign."""
    return {**held, SHOWN: held[SHOWN][held[SHOWN].campaign != campaign]}


def goes_on(example: Example) -> bool:
    """Return whether no view is behind."""
    last = example.epochs[-1]
    return set(last.frontiers.values()) == {last.number}


def test_joined_rows_are_restated_while_the_stream_runs(example: Example) -> None:
    """The view stands still from the decision on until its hours are built, right before, meanwhile and after."""
    example.produce("--from", "2026-03-01T09:00", "--seconds", "3600", "--rate", "1")
    example.seamline("stream", "start", NAME, "--here")
    eventually("all to be read", example.is_read)
    example.drain()
    example.seamline("run", NAME, "--dirty")
    assert example.differences() == ""
    before = example.read("by_site")

    internal = int(example.held()[SHOWN].campaign.mode()[0])
    correct(example, internal)
    said = example.seamline(
        "restate", NAME, "teams", "--from", BUILT[0], "--to", BUILT[1], "--reason", "they are ours"
    )
    assert "by_site: made of such rows, and no answer moves on until that build is published." in said
    eventually("an epoch to name it", lambda: example.epochs[-1].restated == 1)
    late = LATE[NAME](without(example.held(), internal), BUILT)
    example.send(late.topic, late.row, late.at_ms)
    eventually("the late click to be read", example.is_read)
    pd.testing.assert_frame_equal(example.read("by_site"), before)
    assert "restated and not built yet" in example.seamline("status", NAME)

    example.seamline("run", NAME, "--dirty")
    eventually("the view to go on", lambda: goes_on(example))
    assert example.differences(held=without(example.held(), internal)) == ""
    assert "reprocessed: teams" in example.explain(late)
    late = LATE[NAME](without(example.held(), internal), BUILT)
    example.send(late.topic, late.row, late.at_ms)
    eventually("a click of an impression of then to be read", example.is_read)
    assert example.differences(held=without(example.held(), internal)) == ""
    example.seamline("run", NAME, "--dirty")
    assert example.differences("batch", closed=True, held=without(example.held(), internal)) == ""
    example.audit()
    example.seamline("stream", "stop", NAME)
    assert stop_stream(example.layout, timeout=120)
