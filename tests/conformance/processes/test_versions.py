"""A function, a pattern, a group and a sliding window in a fork, and in another version of their code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.conformance.processes.test_restated_folds import DAY, PAID, end, login, require_sound
from tests.unit.process_functions import Abandoned

from seamline.lake.publish.flipping import flip_view
from seamline.lake.publish.forking import fork_pipeline
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.live_versions import stood_still
from seamline.model.functions.function import load_class
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.savepoint import Savepoint
from seamline.model.protocol.seam import Status
from seamline.model.user_code import class_hash
from seamline.serve.explain import explain_number
from seamline.testing.tables import Tables


class Sooner(Abandoned):
    """A cart that nobody touches for half an hour, of which half is lost."""

    def timer(self, state: Any, at: Any, out: Any) -> None:
        """Nobody came."""
        out.emit("abandoned", state.cart / 2)


EDITED = replace(
    PAID, derive=[replace(each, by=Sooner) if each.name == "carts" else each for each in PAID.derive]
)
Rows = list[tuple[object, ...]]


@pytest.fixture
def life(scenario, spark, tmp_path, monkeypatch):
    """A morning with open carts and half a match, whose earlier hours are built."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "tariff.csv").write_text("site,total\nx,2\n")
    made = scenario(PAID, spark=spark, now="2026-01-09")
    made.send(login("ada", "08:10"), login("ada", "08:20"), login("bob", "09:30"), topic="logins")
    made.send({"caller": "ada", "n": 1, "at": f"{DAY}T08:15:00Z"}, topic="calls")
    made.epoch()
    made.send(login("ada", "11:40"), login("cyd", "11:45"), topic="logins")
    made.send({"at": f"{DAY}T11:45:00Z"}, topic="calls")
    made.epoch()
    made.batch()
    return made


def go_on(life) -> None:
    """Send late rows before fired timers, what ends matches, and the end of the day."""
    life.send(login("ada", "11:50"), login("bob", "09:45"), login("ada", "08:40"), topic="logins")
    life.send({"caller": "cyd", "n": 1, "at": f"{DAY}T11:50:00Z"}, topic="calls")
    life.epoch()
    life.engine.catch_up()
    end(life)


def served(pipeline, layout: Layout, version: str = "") -> dict[str, Rows]:
    """Return what is served of each view, or of the first by one of its versions."""
    found = {}
    for view in pipeline.views if not version else pipeline.views[:1]:
        rows = read_merged_answer(pipeline, view, layout, ReadRequest(version=version)).table.to_pylist()
        found[view.name] = sort_rows(
            tuple(row[name] for name in ("user", "window_start", *(each.name for each in view.measures)))
            for row in rows
        )
    return found


def sort_rows(rows: Iterable[tuple[object, ...]]) -> Rows:
    return sorted(rows, key=repr)


def halve(rows: Rows) -> Rows:
    """Return what the edited code makes of what was lost to timers: each row of these views has one."""
    return [(*row[:-1], row[-1] / 2) for row in rows]  # type: ignore[operator]


@pytest.mark.faults
def test_a_fork_goes_on_with_what_was_open(life, spark, scenario):
    """Tails are made from the linked log: timers, half a match and windows that wait for rows are in no table."""
    source: Tables = life.engine
    [*_, last] = source.held
    point = Savepoint(
        "noon",
        last.number,
        source.positions,
        {},
        source.pipeline.record_version,
        "ada",
        "",
        datetime(2026, 1, 9, tzinfo=UTC),
    )
    named = replace(PAID, name="branch")
    branch = scenario(named, spark=spark, now="2026-01-09")
    branch.engine.layout = Layout(source.layout.warehouse, "branch")
    assert fork_pipeline(source.pipeline, source.layout, point, compile_pipeline(named), branch.engine.layout)
    branch.engine.restart()
    branch.ends |= life.ends
    for each in (life, branch):
        go_on(each)
    branch.batch()
    life.batch()
    # The slices of a fork begin with it: what was before is counted by builds.
    found = served(branch.pipeline, branch.engine.layout)
    assert found == served(life.pipeline, source.layout)
    assert [(row[0], row[2]) for row in found["risen"]] == [("ada", 1), ("ada", 1), ("bob", 1)]
    for view in branch.pipeline.views:
        known = read_merged_answer(branch.pipeline, view, branch.engine.layout).intervals.values()
        assert {each.status for each in known} <= {Status.CERTIFIED, Status.OPEN}


@pytest.mark.faults
def test_edited_code_is_served_once_it_is_built(life, spark):
    """Both versions of the function count what comes, as each was born with the name of its class."""
    old, new = life.pipeline.views[0], compile_pipeline(EDITED).views[0]
    engine: Tables = life.engine
    assert old.id != new.id
    before = served(life.pipeline, engine.layout)
    life.pipeline = compile_pipeline(EDITED)
    engine.redefine(life.pipeline)
    assert served(life.pipeline, engine.layout) == before
    engine.catch_up()
    go_on(life)
    life.batch()
    ours, theirs = (served(life.pipeline, engine.layout, each.fingerprint)["left"] for each in (old, new))
    assert [row[0] for row in ours] == ["ada", "ada", "bob", "cyd"]
    assert halve(ours) == theirs
    assert served(life.pipeline, engine.layout)["left"] == ours
    flip_view(life.pipeline, engine.layout, "left")
    assert served(life.pipeline, engine.layout)["left"] == theirs
    explained = explain_number(life.pipeline, new, engine.layout, {"user": "ada"}, (theirs[0][1], None))
    assert explained.proven
    flip_view(life.pipeline, engine.layout, "left", to=old.fingerprint)
    assert served(life.pipeline, engine.layout)["left"] == ours
    require_sound(life)


def forget_code() -> None:
    """Look at classes as another process would, which sees them for the first time."""
    load_class.cache_clear()
    class_hash.cache_clear()


def test_code_that_is_edited_in_place_leaves_answers_as_they_are(life, spark, monkeypatch):
    """The version that is served cannot count any more, and is read until somebody flips or puts the code back."""
    engine: Tables = life.engine
    old, before = life.pipeline.views[0], served(life.pipeline, engine.layout)
    assert [row[0] for row in before["left"]] == ["ada", "bob"]
    with monkeypatch.context() as edited:
        edited.setattr(Abandoned, "edited", True, raising=False)
        forget_code()
        life.pipeline = compile_pipeline(PAID)
        new = life.pipeline.views[0]
        assert new.id != old.id
        assert served(life.pipeline, engine.layout) == before
        engine.redefine(life.pipeline)
        life.send(login("ada", "11:50"), topic="logins")
        life.epoch()
        assert stood_still(life.pipeline, manifest_of(engine.layout)) == {
            old.id: "the code of tests.unit.process_functions:Abandoned has been edited or deleted since"
        }
        found = served(life.pipeline, engine.layout)
        assert (found["left"], len(found["risen"])) == (before["left"], 2)
        # Of another process, which imports the file, the edit here is not to be seen.
        assert "its code was edited, or compiled" in engine.writer.errors[new.id]
    forget_code()
    life.pipeline = compile_pipeline(PAID)
    engine.redefine(life.pipeline)
    engine.catch_up()
    go_on(life)
    life.batch()
    assert [row[0] for row in served(life.pipeline, engine.layout)["left"]] == ["ada", "ada", "bob", "cyd"]
    require_sound(life)
