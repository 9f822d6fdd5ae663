"""For pytest: the fixture ``scenario``, and the time line of a scenario whose test has failed.

Put ``pytest_plugins = ["seamline.testing.plugin"]`` into conftest.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.testing.scenario import Scenario

KEPT: pytest.StashKey[Sequence[Scenario]] = pytest.StashKey()


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Callable[..., Scenario]:
    """Make scenarios of a pipeline: ``scenario(pipeline)``, or with ``spark=session`` on Spark and Delta."""
    kept: list[Scenario] = []
    request.node.stash[KEPT] = kept

    def make(pipeline: Pipeline, *, spark: Any = None, now: str = "") -> Scenario:
        engine = None
        if spark is not None:
            from seamline.testing.tables import Tables

            folder = request.getfixturevalue("tmp_path") / f"warehouse-{len(kept)}"
            engine = Tables(compile_pipeline(pipeline), folder, spark)
        made = Scenario(pipeline, engine, now=now)
        kept.append(made)
        return made

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Show what had happened when a test failed."""
    report = yield
    if report.when == "call" and report.failed:
        for number, each in enumerate(item.stash.get(KEPT, ()), 1):  # type: ignore[arg-type]
            report.sections.append((f"time line of scenario {number}", each.timeline()))
    return report
