"""One pipeline of many: what a task, a driver or a command loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamline.model.compile.catalog import load_catalog, load_pipeline
from seamline.model.errors import DefinitionError, NotFound

DECLARED = """
from pathlib import Path
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count

with (Path(__file__).parent / "run.txt").open("a") as file:
    file.write("{file}\\n")
NAMES = {names}
for name in NAMES:
    globals()[name] = Pipeline(
        name,
        source=KafkaSource("{topic}", "shop STRING, at TIMESTAMP", event_time="at"),
        batch=Batch(start="2026-01-01", interval="1 day"),
        views=[View("by_shop", keys=["shop"], window=Tumbling("1 hour"), measures={{"orders": count()}})],
    )
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, of which one declares ten pipelines under names that stand nowhere."""
    write(tmp_path, "east", '["orders"]')
    write(tmp_path, "many", '[f"shop_{number}" for number in range(10)]')
    write(tmp_path, "west", '["returns", "refunds"]')
    return tmp_path


def write(folder: Path, file: str, names: str, topic: str = "orders") -> None:
    """Write a definition file that notes that it was run."""
    (folder / f"{file}.py").write_text(DECLARED.format(file=file, names=names, topic=topic))


def run(folder: Path) -> list[str]:
    """List the files that were run since this was asked."""
    found = folder / "run.txt"
    names = found.read_text().split() if found.exists() else []
    found.unlink(missing_ok=True)
    return names


def test_other_files_are_not_run(folder: Path) -> None:
    """The start of a task takes no longer with a thousand pipelines beside its own."""
    assert load_pipeline(folder, "refunds").name == "refunds"
    assert run(folder) == ["west"]


def test_a_name_that_is_put_together_is_found(folder: Path) -> None:
    """A loop may declare a pipeline for each shop."""
    assert load_pipeline(folder, "shop_7").name == "shop_7"
    assert run(folder) == ["east", "many", "west"]


def test_a_name_that_is_not_there_is_told_with_those_that_are(folder: Path) -> None:
    """It may be misspelt."""
    with pytest.raises(NotFound, match="There is no pipeline 'order'") as told:
        load_pipeline(folder, "order")
    assert "orders" in told.value.hint
    with pytest.raises(NotFound, match="does not exist"):
        load_pipeline(folder / "gone", "orders")


@pytest.mark.parametrize("first", ["raise ValueError('orders')", "orders = (", "orders = 1"])
def test_another_file_that_is_wrong_is_in_nobodys_way(folder: Path, first: str) -> None:
    """It names the pipeline, and stands before the one that declares it."""
    (folder / "a.py").write_text(first)
    assert load_pipeline(folder, "orders").name == "orders"


def test_of_two_of_a_name_it_is_the_same_that_the_catalog_takes(folder: Path) -> None:
    """The tables are of one definition, whoever loads it."""
    write(folder, "again", '["orders"]', topic="others")
    one, other = load_pipeline(folder, "orders"), load_catalog(folder).pipeline("orders")
    assert one.definition.topics == other.definition.topics == ("others",)


def test_a_definition_that_cannot_be_compiled_is_told_as_the_catalog_tells_it(folder: Path) -> None:
    """The file, the line and the field are named."""
    text = (folder / "east.py").read_text()
    (folder / "east.py").rename(folder / "orders.py")
    (folder / "orders.py").write_text(text.replace('keys=["shop"]', 'keys=["shops"]'))
    with pytest.raises(DefinitionError, match="shops") as told:
        load_pipeline(folder, "orders")
    assert (Path(told.value.file).name, told.value.field) == ("orders.py", "views[by_shop].keys")
