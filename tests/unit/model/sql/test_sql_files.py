"""A SQL file in the folder of definitions: found, watched and explained as a Python file is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.model.sql.test_features import BY_SHOP, HEAD, ORDERS, REFUNDS, SCHEMA

import seamline
from seamline.cli import main
from seamline.model.compile.catalog import load_cached_catalog, load_catalog, load_pipeline
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import DefinitionError
from seamline.orchestration.checked_definitions import load_valid_definitions
from seamline.supervisor.watcher import Definitions

SHOP = f"{HEAD}\n{ORDERS}\n{BY_SHOP}\n"
PYTHON = f"""
from seamline import *
shop = Pipeline("shop", KafkaSource("orders", {SCHEMA!r}, "at"), [
    View("by_shop", ["shop"], Tumbling("1 hour"), {{"n": count()}})], Batch("1 day", "2026-01-01"), defaults="2026-11")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.sql").write_text(SHOP)
    (tmp_path / "_notes.sql").write_text("SELECT 1")
    (tmp_path / ".shop.sql").write_text("half of a fi")
    return tmp_path


def test_a_file_is_found_beside_those_in_python(folder: Path) -> None:
    """A team moves one pipeline at a time."""
    (folder / "other.py").write_text(PYTHON.replace('"shop",', '"other",', 1))
    found = load_catalog(folder)
    assert (sorted(found.pipelines), found.problems) == (["other", "shop"], ())
    assert found.pipelines["shop"].definition == seamline.pipeline_from_sql(folder / "shop.sql")
    assert load_pipeline(folder, "shop").views[0].fingerprint == found.view("other.by_shop")[1].fingerprint


def test_one_pipeline_in_two_languages_is_declared_twice(folder: Path) -> None:
    """A copy that stays behind after a move must not be the one that runs."""
    (folder / "shop.py").write_text(PYTHON)
    [problem] = load_catalog(folder).problems
    assert "Pipeline 'shop' is also declared in" in problem.message


def test_an_edited_file_is_read_again(folder: Path) -> None:
    """Pages and supervisors keep a folder until one of its files is another."""
    watched = Definitions(folder)
    assert watched.now()["shop"].definition.owner == "airflow"
    assert load_cached_catalog(folder).pipelines["shop"].definition.owner == "airflow"
    (folder / "shop.sql").write_text(SHOP.replace("WITH (batch", "WITH (owner = 'shop-data', batch", 1))
    assert watched.now()["shop"].definition.owner == "shop-data"
    assert load_cached_catalog(folder).pipelines["shop"].definition.owner == "shop-data"


WRONG = {
    "a rule": ("WATERMARK", "CONSTRAINT x CHECK (\n  price > 0), WATERMARK", "price"),
    "a derived column": ("WATERMARK", "day AS\n  CAST(att AS DATE), WATERMARK", "CAST"),
    "a side": ("WATERMARK", "SIDE dear AS\n  price > 0, WATERMARK", "price"),
    "a condition of the source": (") WITH (connector", ") WHERE\n  price > 0 WITH (connector", "price"),
    "a key": ("GROUP BY shop", "\n  GROUP BY shopp", "GROUP"),
    "a condition": ("FROM orders", "FROM orders WHERE\n  price > 0", "price"),
    "a measure": ("count(*)", "\n  sum(price)", "sum"),
    "a nested query": ("count(*)", "\n  sum((SELECT 1))", "sum"),
    "a window": ("TUMBLE(at, INTERVAL '1 hour')", "\n  HOP(at, INTERVAL '2 hours', INTERVAL '1 hour')", "HOP"),
    "an expectation": ("'1 hour')", "'1 hour')\n  EXPECT nn >= 1", "EXPECT"),
    "a setting": ("defaults = '2026-11'", "\n  defaults = '2020-01'", "defaults"),
    "a setting of the source": ("connector =", "\n  max_future = 'soon', connector =", "max_future"),
    "a sink": (
        "hour');",
        "hour');\nCREATE SINK s FROM by_shop WITH (connector = 'kafka', topic = 'a b');",
        "CREATE SINK",
    ),
}  # fmt: skip


@pytest.mark.parametrize("several", [False, True], ids=["one source", "two sources"])
@pytest.mark.parametrize("name", WRONG)
def test_what_compiling_finds_wrong_has_its_line_and_column(name: str, several: bool, folder: Path) -> None:
    """An expression that names no column is as much a mistake in the file as a comma is."""
    old, new, at = WRONG[name]
    text = SHOP.replace("shopp", "shop").replace(old, new, 1)
    if name == "a key":
        text = text.replace("SELECT shop", "SELECT shopp", 1)
    if several:
        text = text.replace("CREATE VIEW", f"{REFUNDS}\nCREATE VIEW", 1)
    (folder / "shop.sql").write_text(text)
    [problem] = load_catalog(folder).problems
    line = text.splitlines()[problem.line - 1]
    assert line[problem.column - 1 :].startswith(at), (str(problem), line)
    assert str(problem).startswith(f"{folder / 'shop.sql'}:{problem.line}:{problem.column}: ")


def test_a_problem_of_no_part_is_at_the_pipeline(folder: Path) -> None:
    """Without a view there is nothing to point at."""
    (folder / "shop.sql").write_text(f"\n{HEAD}\n{ORDERS}\n")
    [problem] = load_catalog(folder).problems
    assert (problem.field, problem.line, problem.column) == ("views", 2, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfeC", "The file is not UTF-8: byte 0 is 0xff."),
        ("CREATE PIPELINE größe".encode("latin-1"), "The file is not UTF-8: byte 18 is 0xf6."),
    ],
)
def test_a_file_that_is_no_text_is_said_to_be_none(content: bytes, message: str, folder: Path) -> None:
    """What an editor saved in another encoding is not guessed at."""
    (folder / "shop.sql").write_bytes(content)
    [problem] = load_catalog(folder).problems
    assert problem.message == message
    assert problem.file == str(folder / "shop.sql")


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    """A path that is misspelt is the first thing that goes wrong."""
    with pytest.raises(DefinitionError, match="No such file"):
        seamline.pipeline_from_sql(str(tmp_path / "none.sql"))


def test_check_lists_what_sql_declares(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands know no difference."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(folder))
    assert main(["check"]) == 0
    version = compile_pipeline(seamline.pipeline_from_sql(folder / "shop.sql")).views[0].fingerprint
    said = capsys.readouterr().out
    assert f"shop  {folder / 'shop.sql'}:1\n" in said
    assert f"version {version}" in said
    (folder / "shop.sql").write_text(SHOP.replace("FROM orders", "FROM nowhere"))
    assert main(["check"]) == 3
    assert "shop.sql:3:56: VIEW by_shop, FROM: There is no source 'nowhere'." in capsys.readouterr().err


def test_airflow_keeps_the_place_of_a_problem(folder: Path, tmp_path: Path) -> None:
    """The verdict is kept beside the state; the page of a broken DAG shows what check shows."""
    (folder / "shop.sql").write_text(SHOP.replace("count(*)", "sum(price)"))
    first, again = (load_valid_definitions(folder, tmp_path / "home")[1] for _ in range(2))
    assert list(map(str, first)) == list(map(str, again))
    assert "shop.sql:3:37: " in str(first[0])


def test_reading_sql_imports_no_parser_of_sql(folder: Path) -> None:
    """DAG files are parsed every half minute, and are read by definitions without engines."""
    code = (
        f"import sys, seamline; assert 'seamline.model.sql.reader' not in sys.modules; "
        f"seamline.pipeline_from_sql({str(folder / 'shop.sql')!r}); print('sqlglot' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(seamline.__file__).parents[1])}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
