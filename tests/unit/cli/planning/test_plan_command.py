"""`seamline plan`: what would be built and change, for people, for a pull request and for a script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.unit.past import build
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, opened

from seamline.cli import main
from seamline.cli.planning.plan_command import BUILDS, DIFFERS
from seamline.local.revisions import loaded_revisions
from seamline.model.compile.stored_definition import to_json
from seamline.model.protocol.manifest import Act

pytestmark = pytest.mark.slow

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
GIT |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two published days, and a definition that is in git."""
    shop = opened(tmp_path, monkeypatch)
    shop.state(Act.BIRTH, epoch=0, definition=to_json(shop.compiled.definition))
    shop.epoch([Sale(1, "a", 4), Sale(2, "a", 5), Sale(25 * 60, "b", 7)], watermark=START + 2 * DAY)
    build(shop, "one", cut=0)
    build(shop, "two", cut=0, day=1)
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run(
            ["git", *arguments], cwd=tmp_path / "definitions", env={**os.environ, **GIT}, check=True
        )
    return shop


def edit(tmp_path: Path, before: str, after: str) -> None:
    """Edit the definition."""
    assert before in DEFINITION
    (tmp_path / "definitions" / "shop.py").write_text(DEFINITION.replace(before, after))


def test_a_change_of_definitions_is_sized_and_previewed(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that a reviewer asks: what is new and why, what it costs, and which numbers move."""
    argv = ["plan", "--diff", "main"]
    assert main([*argv, "--exit-code"]) == 0
    assert "no definition has changed" in capsys.readouterr().out
    edit(tmp_path, 'sum("amount")', 'sum("amount + 1")')
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert "measure total: sum(amount) -> sum(amount + 1)" in said
    assert "to build: 2 intervals, 3 rows, at most" in said and "was not looked at" in said
    assert main([*argv, "--exit-code"]) == BUILDS
    capsys.readouterr()
    assert main([*argv, "shop", "--preview", "--exit-code", "--format", "json"]) == DIFFERS
    row = json.loads(capsys.readouterr().out)
    [change] = row["pipelines"]
    assert (row["builds"], row["differs"], change["views"][0]["intervals"]) == (True, True, 2)
    assert change["previews"][0]["measures"][0]["relative"] == pytest.approx(2 / 9)
    assert main([*argv, "--preview", "--format", "markdown", "--no-examples"]) == 0
    said = capsys.readouterr().out
    assert "**Published numbers would change.**" in said and "| total | 2 | +2 | +22.2 % |  |" in said
    edit(tmp_path, '"largest": max("amount")', '"largest": max("amount + 0")')
    assert main([*argv, "--preview", "--exit-code"]) == BUILDS
    assert "no published number that was looked at would change" in capsys.readouterr().out


def test_without_a_warehouse_sizes_are_unknown(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A workflow may have no way to the tables: versions are told all the same, and no folder is made."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "none"))
    edit(tmp_path, 'sum("amount")', 'sum("amount + 1")')
    assert main(["plan", "--diff", "main", "--preview", "--exit-code"]) == BUILDS
    assert "to build: not known: no log of it is in the warehouse" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_a_definition_that_is_wrong_ends_with_its_code(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the rest has been told: one broken file hides no other."""
    edit(tmp_path, 'sum("amount")', 'sum("amount + 1")')
    (tmp_path / "definitions" / "broken.py").write_text("x =")
    assert main(["plan", "--diff", "main"]) == 3
    printed = capsys.readouterr()
    assert "wrong now: broken.py:1: invalid syntax." in printed.out and "measure total" in printed.out
    assert "1 definition cannot be loaded" in printed.err


def test_late_rows_are_previewed_before_they_are_built(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run would change published numbers: a script may stop at that."""
    argv = ["plan", "shop", "--preview", "--exit-code"]
    assert main(argv) == 0
    assert capsys.readouterr().out.endswith("nothing to do\n")
    shop.epoch([Sale(4, "a", 10)], watermark=START + 2 * DAY)
    assert main(argv) == DIFFERS
    assert "total: 1 row changed, at most +10 and +111 %" in capsys.readouterr().out
    assert main(["plan", "shop", "--exit-code", "--format", "json"]) == BUILDS
    row = json.loads(capsys.readouterr().out)
    assert (row["builds"][0]["late"], row["previews"]) == (1, [])
    assert main(["plan", "shop", "--preview", "--format", "markdown"]) == 0
    assert "| total | 1 | +10 | +111 % |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["plan"], 2, "Name a pipeline"),
        (["plan", "--diff", "main", "--dirty"], 2, "--diff cannot be used with"),
        (["plan", "--diff", "nowhere"], 4, "There is no revision 'nowhere'"),
        (["plan", "nothing", "--diff", "main"], 4, "There is no pipeline 'nothing'"),
    ],
)
def test_what_is_asked_wrongly_is_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    """Each says what to write instead."""
    assert main(argv) == code
    assert said in capsys.readouterr().err


def test_a_job_that_is_cancelled_leaves_nothing_behind(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a revision are gone, whichever signal ends the command."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def cancelled(folder: Path, *_: object) -> None:
        if "seamline-revision-" in str(folder):
            assert [*(tmp_path / "temporary").iterdir()]
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(loaded_revisions, "load_definitions", cancelled)
    assert main(["plan", "--diff", "main"]) == 130
    assert [*(tmp_path / "temporary").iterdir()] == []
