"""Long histories, drawn by Hypothesis: over the model with wide bounds, and over the shipped code on real tables."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.protocol import shipped
from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.search import initial, judge, protocol_moves
from tests.protocol.shipped import PHASES, PIPELINE, START, VIEW, Mortal, Stream, unanswered

from seamline.lake.log.master import Master
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import Conflict, FenceLost, PublishRefused
from seamline.model.time.intervals import Interval
from seamline.spark.stream import catch_up

RULES = Rules()
WIDE = Bounds(
    topic=(0, 1, None, 0, 1, 0, None, 1),
    ids=(0, 1, 2, 0, 4, 5, 6, 4),
    writers=3,
    tokens=8,
    numbers=12,
    mishaps=4,
    upkeeps=5,
    builds=5,
    rollbacks=1,
    floors=3,
    forgets=2,
    flips=2,
    lookups=1,
    reads=5,
    views=2,
)


class Walk(RuleBasedStateMachine):
    """One way through the model; every next step there is, is judged, and one of them taken."""

    def __init__(self) -> None:
        super().__init__()
        self.state = initial(WIDE)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """Take any step."""
        found = list(protocol_moves(self.state, RULES, WIDE))
        if not found:
            return
        # A death is one step of many: drawn as often as the others, no epoch would ever be held.
        lively = [each for each in found if not each[0].endswith("dies")] or found
        some = found if data.draw(st.integers(0, 9)) == 0 else lively
        _, self.state = some[data.draw(st.integers(0, len(some) - 1))]
        judge(self.state, RULES, WIDE)


class Tables(RuleBasedStateMachine):
    """One history of the shipped code, beside the list of what must be answered."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.stream = Stream(self.folder)
        self.writer: Mortal = self.stream.start()
        self.stalled: list[Mortal] = []
        self.built: list[str] = []
        self.names = count()
        self.claims: dict[int, int] = {}
        self.real = catch_up.compute_missing_slices
        catch_up.compute_missing_slices = shipped.computed  # type: ignore[assignment]

    def teardown(self) -> None:
        """Leave nothing."""
        catch_up.compute_missing_slices = self.real
        shutil.rmtree(self.folder)

    @rule(days=st.lists(st.sampled_from([0, 1, None]), min_size=1, max_size=3))
    def records_come(self, days: list[int | None]) -> None:
        self.stream.produce(*days)

    @rule(edge=st.booleans(), more=st.integers(0, 3))
    def an_epoch_is_held(self, edge: bool, more: int) -> None:
        try:
            self.stream.epoch(self.writer, self.end(more), edge=edge)
        except FenceLost:
            self.again()

    def end(self, more: int) -> int:
        """Return an end that is there."""
        return min(self.stream.position(self.writer) + more, len(self.stream.topic))

    def again(self) -> None:
        """Start as a supervisor would."""
        self.writer = self.stream.start()

    @rule(phase=st.sampled_from(PHASES), more=st.integers(1, 3))
    def the_driver_dies(self, phase: str, more: int) -> None:
        with suppress(FenceLost):
            self.stream.epoch(self.writer, self.end(more), dies_after=phase)
        self.again()

    @rule(
        name=st.sampled_from(["slices", "quarantine", "master", "ledger"]),
        landed=st.booleans(),
        more=st.integers(1, 3),
    )
    def a_commit_has_no_answer(self, name: str, landed: bool, more: int) -> None:
        table = next(each for each in self.writer.tables if each.root.name == name)
        try:
            with unanswered(table, landed=landed):
                self.stream.epoch(self.writer, self.end(more))
        except FenceLost:
            self.again()
        except OSError:
            try:
                self.writer.repair_ledger()
            except FenceLost:
                self.again()

    @rule()
    def another_driver_takes_over(self) -> None:
        self.stalled.append(self.writer)
        self.again()

    @precondition(lambda self: self.stalled)
    @rule(data=st.data())
    def a_stalled_driver_wakes(self, data: st.DataObject) -> None:
        old = self.stalled.pop(data.draw(st.integers(0, len(self.stalled) - 1)))
        before = Master.open(self.stream.layout).table.version
        for table in old.tables:
            try:
                table.append([])
            except FenceLost:
                continue
            raise AssertionError(f"{table.root} took a commit of token {old.token}")
        assert Master.open(self.stream.layout).table.version == before

    @rule(most=st.integers(1, 4))
    def views_catch_up(self, most: int) -> None:
        try:
            if catch_up.catch_up(None, self.writer, most=most):  # type: ignore[arg-type]
                self.stream.epoch(self.writer, self.stream.position(self.writer))
        except FenceLost:
            self.again()

    @rule()
    def upkeep(self) -> None:
        assert maintain_tables(PIPELINE, self.stream.layout).refused == ()

    @precondition(lambda self: Master.open(self.stream.layout).edge >= 0)
    @rule(day=st.integers(0, 1))
    def a_day_is_built(self, day: int) -> None:
        name = f"g{next(self.names)}"
        self.stream.build(day, Master.open(self.stream.layout).edge, name)
        self.built.append(name)

    @precondition(lambda self: self.built)
    @rule(data=st.data())
    def a_build_is_published(self, data: st.DataObject) -> None:
        name = self.built.pop(data.draw(st.integers(0, len(self.built) - 1)))
        with suppress(Conflict, PublishRefused):
            publish_run(PIPELINE, self.stream.layout, name)

    @invariant()
    def every_answer_is_right_and_none_goes_back(self) -> None:
        found = read_merged_answer(PIPELINE, VIEW, self.stream.layout)
        manifest = ManifestTable.ensure(self.stream.layout).read()
        claims = {}
        for day in (0, 1):
            interval = Interval(START + timedelta(days=day), START + timedelta(days=day + 1)).id
            claims[day] = max(manifest.cut(VIEW.id, interval), found.until)
            told = found.intervals.get(interval)
            assert told is None or told.complete_to == claims[day]
        topic = self.stream.topic
        wanted = {at: 1 for number, at in self.stream.held if number <= claims[topic[at] or 0]}
        rows: dict[str, Any] = found.table.select(["id", "n"]).to_pydict()
        assert dict(zip(*rows.values(), strict=True)) == wanted
        assert all(claims[day] >= last for day, last in self.claims.items())
        self.claims = claims


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
PLAIN = settings(deadline=None, suppress_health_check=QUIET, derandomize=True, phases=[Phase.generate])


def test_long_walks_through_the_model() -> None:
    """What a search cannot reach for its width, a walk may by its length."""
    run(Walk, settings(PLAIN, max_examples=12, stateful_step_count=60))


def test_histories_of_the_shipped_code() -> None:
    """The same on real tables, where a commit is a commit."""
    run(Tables, settings(PLAIN, max_examples=3, stateful_step_count=12))


@pytest.mark.faults
def test_many_long_walks_through_the_model() -> None:
    """Others each time; a failure prints its steps."""
    run(
        Walk,
        settings(PLAIN, derandomize=False, phases=tuple(Phase), max_examples=400, stateful_step_count=120),
    )


@pytest.mark.faults
def test_many_histories_of_the_shipped_code() -> None:
    """Others each time; a failure prints its steps."""
    run(
        Tables,
        settings(PLAIN, derandomize=False, phases=tuple(Phase), max_examples=20, stateful_step_count=30),
    )


def run(machine: type[RuleBasedStateMachine], bounds: settings) -> None:
    """Run a machine as a test."""
    case = machine.TestCase
    case.settings = bounds
    case().runTest()
