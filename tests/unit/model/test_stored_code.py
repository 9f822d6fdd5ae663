"""A stored definition names code that was edited or deleted since: its versions can be read, and count nothing."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from seamline import Batch, CoGroup, KafkaSource, Pipeline, Process, Tumbling, View, Watermark, count, own
from seamline.kernel.transforming import apply_transform
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.live_versions import stood_still
from seamline.model.compile.processes.compiled_process import require_same_code
from seamline.model.compile.stored_definition import (
    from_json,
    resolve_view_version,
    to_json,
)
from seamline.model.definition.asks import Ask
from seamline.model.errors import DefinitionError, ProtocolError
from seamline.model.functions.folding import BLANK, FunctionUnusable, KeyRow, Place
from seamline.model.measures.own import load_user_measure
from seamline.model.protocol.manifest import Manifest
from seamline.model.user_code import class_of, function_of, hash_code

MODULE = "edited_since"
CODE = """
class Doubles:
    state = "n INT"
    emits = "twice INT"
    sides = {"odd": "why STRING"}

    def row(self, state, row, out, *more, factor=2):
        out.emit(row["n"] * 2)
        return (row["n"],)

    def end(self, *given):
        state, at, out = given
        out.side("odd", "over")


class Pairs:
    emits = "met INT"
    state, row = 3, "a constant of a name that another kind of class needs"

    def group(self, key, lefts, rights, out):
        out.emit(len(lefts) + len(rights))


class Total:
    state = "n INT"
    result = "INT"

    def prepare(self, value):
        return (value,)

    def plus(self, left, right):
        return (left[0] + right[0],)

    def present(self, state):
        return state[0]


def shout(row):
    return {"loud": row["name"].upper()}


async def ask(requests):
    return [{"risk": 1} for _ in requests]
"""


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the module anew, or delete it where there is no text."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def edited(text: str) -> None:
        sys.modules.pop(MODULE, None)
        load_user_measure.cache_clear()
        (tmp_path / f"{MODULE}.py").unlink(missing_ok=True)
        importlib.invalidate_caches()
        if text:
            (tmp_path / f"{MODULE}.py").write_text(text)

    edited(CODE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return edited


def source(name: str, **more: object) -> KafkaSource:
    return KafkaSource(
        name=name, topic=name or "a", schema="n INT, name STRING, at TIMESTAMP", event_time="at", **more
    )


def derived() -> Pipeline:
    """Views of a function, of a group, and of neither."""
    hour = Tumbling("1 hour")
    return Pipeline(
        name="edited",
        source=[source("a", watermark=Watermark("1 minute")), source("b", watermark=Watermark("1 minute"))],
        derive=[
            Process("doubled", of="a", by=f"{MODULE}:Doubles", keys=["name"]),
            CoGroup("paired", left="a", right="b", on={"name": "name"}, window=hour, by=f"{MODULE}:Pairs"),
            Ask("risk", of="b", by=f"{MODULE}:ask", request={"n": "n"}, columns=["risk INT"]),
        ],
        views=[
            View("twice", of="doubled", keys=["twice"], window=hour, measures={"n": count()}),
            View("odd", of="doubled.odd", keys=["why"], window=hour, measures={"n": count()}),
            View("pairs", of="paired", keys=["met"], window=hour, measures={"n": count()}),
            View("plain", of="a", keys=["name"], window=hour, measures={"n": count()}),
        ],
        batch=Batch("1 day", "2026-01-01"),
    )


def born(pipeline: CompiledPipeline) -> Manifest:
    """Return a manifest in which all views are born and live."""
    text = to_json(pipeline.definition)
    return Manifest(
        births={view.id: 0 for view in pipeline.views},
        definitions={view.id: text for view in pipeline.views},
    )


EDITED = CODE.replace("* 2", "* 3").replace("len(lefts) +", "2 * len(lefts) +")
OTHER = EDITED.replace("twice INT", "thrice INT").replace("def end(self, *given)", "def ended(self, given)")


@pytest.mark.parametrize(
    "text", [EDITED, OTHER, "", "class Doubles:\n    emits = 3\n", "raise OSError('no')"]
)
def test_a_version_can_be_read_after_its_code_is_gone(edit: Callable[[str], None], text: str) -> None:
    """Reading needs the columns that it emits, and none of its calls; what it had was counted by its own code."""
    before = compile_pipeline(derived())
    manifest = born(before)
    edit(text)
    for view in before.views:
        stored, found = resolve_view_version(empty(before), manifest, view.id)
        assert (found.id, found.keys, found.measures) == (view.id, view.keys, view.measures)
        assert stored.record_version == before.record_version
    still = stood_still(empty(before), manifest)
    assert {id.partition("/")[0] for id in still} == {"twice", "odd", "pairs"}
    assert set(still.values()) == {
        f"the code of {MODULE}:{each} has been edited or deleted since" for each in ("Doubles", "Pairs")
    }


def empty(pipeline: CompiledPipeline) -> CompiledPipeline:
    """Return a pipeline that has none of the versions itself, as one whose code has been edited."""
    return replace(pipeline, views=())


def test_what_stands_in_folds_nothing(edit: Callable[[str], None]) -> None:
    """Else a row would be said to have failed, as if the function had raised."""
    before = compile_pipeline(derived())
    manifest = born(before)
    edit(EDITED)
    _, view = resolve_view_version(empty(before), manifest, before.views[0].id)
    assert view.process is not None
    row = KeyRow(0, Place(0, 0, "a", "t"), {"n": 1, "name": "x"})
    with pytest.raises(FunctionUnusable, match="edited_since:Doubles is not that of this version"):
        view.process.fold.finish(BLANK, [row], 10)


def test_a_process_that_imports_other_code_does_not_fold_by_it(edit: Callable[[str], None]) -> None:
    """It starts after an edit, beside a driver that has the code of before: the version would get other numbers."""
    [view, *_] = compile_pipeline(derived()).views
    assert view.process is not None
    require_same_code(view.process.function)
    edit(EDITED)
    [now, *_] = compile_pipeline(derived()).views
    assert now.process is not None
    with pytest.raises(FunctionUnusable, match="its code was edited, or compiled by another"):
        require_same_code(replace(view.process.function, user=now.process.function.user))


def test_code_that_remembers_is_what_it_was_before_any_call(edit: Callable[[str], None]) -> None:
    """Else the second fold of a class in a process would be refused as edited."""
    edit(
        CODE.replace('emits = "twice INT"', 'emits = "twice INT"\n    known = {}')
        .replace('out.emit(row["n"] * 2)', 'out.emit(self.known.setdefault(row["n"], row["n"] * 2))')
        .replace("def shout(row):", "def shout(row, known={}):\n    known[len(known)] = row")
    )
    before = compile_pipeline(derived())
    shouts = function_of(f"{MODULE}:shout")
    code = hash_code(shouts)
    shouts({"name": "x"})
    [view, *_] = before.views
    assert view.process is not None
    row = KeyRow(0, Place(0, 0, "a", "t"), {"n": 1, "name": "x"})
    view.process.fold.finish(BLANK, [row], 10)
    assert class_of(f"{MODULE}:Doubles").known == {1: 2} and shouts.__defaults__ == ({0: {"name": "x"}},)  # type: ignore[attr-defined]
    assert hash_code(shouts) == code
    require_same_code(view.process.function)
    assert [each.id for each in compile_pipeline(derived()).views] == [each.id for each in before.views]
    assert not stood_still(empty(before), born(before))


def test_a_set_in_a_class_is_the_same_in_every_process(edit: Callable[[str], None], tmp_path: Path) -> None:
    """It has no order of its own: each process has another, and would be said to have other code."""
    edit(CODE.replace("class Doubles:", "class Doubles:\n    words = {'a', 'b', 'c', 'd', 'e'}"))
    said = (
        f"from seamline.model.definition.stored_code import hash_class; print(hash_class('{MODULE}:Doubles'))"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    found = {
        subprocess.check_output(
            [sys.executable, "-c", said], env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(seed)}
        )
        for seed in (1, 2, 3)
    }
    assert len(found) == 1


def test_code_that_is_put_back_counts_again(edit: Callable[[str], None]) -> None:
    """It is known by what it does, wherever it stands in the file."""
    before = compile_pipeline(derived())
    manifest = born(before)
    edit("")
    assert stood_still(empty(before), manifest)
    edit("# Another line.\n" + CODE)
    assert not stood_still(empty(before), manifest)


def test_a_version_of_other_rows_can_be_read(edit: Callable[[str], None]) -> None:
    """The code of a transform is in the version of each row, and so of each view."""
    shouted = Pipeline(
        name="shouted",
        source=source(""),
        transform=f"{MODULE}:shout",
        transform_schema="loud STRING",
        views=[View("loud", keys=["loud"], window=Tumbling("1 hour"), measures={"n": count()})],
        batch=Batch("1 day", "2026-01-01"),
    )
    before = compile_pipeline(shouted)
    manifest = born(before)
    edit(CODE.replace("upper", "lower"))
    now = compile_pipeline(shouted)
    assert now.views[0].id != before.views[0].id
    stored, found = resolve_view_version(now, manifest, before.views[0].id)
    assert (found.id, stored.record_version) == (before.views[0].id, before.record_version)
    assert "its rows are of record version" in stood_still(now, manifest)[found.id]
    assert stored.record.transform is not None
    with pytest.raises(ProtocolError, match="edited_since:shout is not that of this version"):
        apply_transform(pa.table({"n": [1]}), stored.record.transform)
    edit("")
    assert resolve_view_version(empty(now), manifest, before.views[0].id)[1].id == found.id


@pytest.mark.parametrize("text", [CODE.replace("left[0] +", "1 + left[0] +"), ""])
def test_a_measure_whose_code_is_gone_merges_nothing(edit: Callable[[str], None], text: str) -> None:
    """Its states are merged where they are read: by other code they would make other numbers."""
    before = compile_pipeline(
        Pipeline(
            name="totals",
            source=[source("a")],
            views=[
                View(
                    "total",
                    of="a",
                    keys=["name"],
                    window=Tumbling("1 hour"),
                    measures={"n": own("n", by=f"{MODULE}:Total")},
                )
            ],
            batch=Batch("1 day", "2026-01-01"),
        )
    )
    manifest = born(before)
    edit(text)
    with pytest.raises(ProtocolError) as raised:
        resolve_view_version(empty(before), manifest, before.views[0].id)
    assert "put that back" in str(raised.value)


def test_what_is_stored_says_what_the_code_is(edit: Callable[[str], None]) -> None:
    """And nothing where a definition names none, so that what is stored of others is as it was."""
    text = to_json(derived())
    assert from_json(text) == derived()
    assert '"sides":{"odd":"why STRING"}' in text and '"awaited":true' in text
    edit("")
    assert '"code"' not in to_json(derived())
    with pytest.raises(DefinitionError):
        compile_pipeline(derived())
