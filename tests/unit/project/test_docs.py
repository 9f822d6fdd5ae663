"""What the documents show must work as it stands there."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from seamline import Pipeline
from seamline.model.compile.compiled_pipeline import compile_pipeline

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
FIGURE = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = BLOCK.findall((DOCS / "definition.md").read_text())


@pytest.mark.parametrize("at", range(len(EXAMPLES)))
def test_an_example_compiles(at: int) -> None:
    """The first thing a newcomer does is copy it."""
    names: dict[str, Any] = {}
    for example in EXAMPLES[: at + 1]:
        exec(compile(example, "definition.md", "exec"), names)
    made = [value for value in names.values() if isinstance(value, Pipeline)]
    assert made
    for each in made:
        assert compile_pipeline(each).views


def first_pipeline() -> dict[str, Any]:
    """Run the README's first pipeline."""
    [block] = BLOCK.findall((ROOT / "README.md").read_text())
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_first_pipeline_is_tested_as_the_page_says(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's pipeline under the test of docs/testing.md."""
    module = ModuleType("pipelines.orders")
    vars(module).update(first_pipeline())
    monkeypatch.setitem(sys.modules, "pipelines.orders", module)
    [example] = BLOCK.findall((DOCS / "testing.md").read_text())
    names: dict[str, Any] = {}
    exec(compile(example, "testing.md", "exec"), names)
    [test] = [value for name, value in names.items() if name.startswith("test_")]
    test(scenario)


def test_the_first_pipeline_is_the_tutorials() -> None:
    """Who goes from the README, or the site's first page, to the tutorial goes on where they were."""
    first = BLOCK.findall((DOCS / "tutorial.md").read_text())[0]
    assert [first] == BLOCK.findall((ROOT / "README.md").read_text())


def test_the_figures_of_the_readme_have_been_measured() -> None:
    """A figure is copied from docs/performance.md, whose section has the command; a new run changes both."""
    table = (ROOT / "README.md").read_text().partition("| what | measured | by |")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    [_, goals, *sections] = (DOCS / "performance.md").read_text().split("\n## ")
    assert len(rows) > 5
    for what, measured, command in rows:
        [section] = [each for each in sections if command in each.splitlines()[0]]
        assert set(FIGURE.findall(measured)) <= set(FIGURE.findall(goals + section)), what


CITED = re.compile(r"\brules? (\d+)((?:(?:, | and )\d+)*)\b")
RULE = re.compile(r"^\*\*Rule (\d+): ", re.MULTILINE)


def test_every_rule_that_is_cited_is_on_the_page() -> None:
    """Whoever reads "rule 9" in the code finds it in docs/protocol.md, and each scenario that it names."""
    page = (DOCS / "protocol.md").read_text()
    rules = list(map(int, RULE.findall(page)))
    assert rules == [*range(1, len(rules) + 1)]
    found = {
        (int(number), str(file.relative_to(ROOT)))
        for folder in ("include", "tests", "docs", "spark_jobs", "dags", "plugins", "benchmarks")
        for kind in ("py", "md", "toml")
        for file in (ROOT / folder).rglob(f"*.{kind}")
        if file.name != "test_refused_samples.py"
        for first, more in CITED.findall(file.read_text())
        for number in re.findall(r"\d+", first + more)
    }
    assert len(found) > 40
    assert not {(number, file) for number, file in found if number not in rules}
    scenarios = tomllib.loads((ROOT / "tests/protocol/scenarios.toml").read_text())
    named = [
        each
        for inside in re.findall(r"\[([A-Z]\d+(?:(?:, | to )[A-Z]\d+)*)\]", page)
        for each in re.findall(r"[A-Z]\d+", inside)
    ]
    assert len(named) > 20 and set(named) <= set(scenarios)
    told = {
        int(each) for scenario in scenarios.values() for each in re.findall(r"\((\d+)\)", scenario["rule"])
    }
    assert told and told <= set(rules)
