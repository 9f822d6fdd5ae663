"""The definitions of another revision: read beside the work tree, which stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.shop import DEFINITION

from seamline.local.revisions.git_revisions import find_repository
from seamline.local.revisions.loaded_revisions import (
    RevisedDefinitions,
    compare_with_revision,
    load_definitions,
)
from seamline.model.errors import NotFound, SetupError
from seamline.plan.revision.definition_diff import PipelineChangeKind
from seamline.plan.wording.revision_text import list_view_parts

pytestmark = pytest.mark.slow

EDITED = DEFINITION.replace('sum("amount")', 'sum("amount + 1")')
OWN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
OWN |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}


def git(folder: Path, *arguments: str) -> str:
    """Run git without this machine's settings."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **OWN}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in git, on a branch that has left main, in a folder whose name has a space."""
    folder = tmp_path / "a project"
    (folder / "pipelines").mkdir(parents=True)
    (folder / "pipelines" / "shop.py").write_text(DEFINITION)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "checkout", "-q", "-b", "edit")
    return folder


def compared(project: Path, base: str = "main") -> RevisedDefinitions:
    """Compare the project's definitions."""
    return compare_with_revision((project / "pipelines").resolve(), base)


def test_an_edit_is_compared_with_where_the_branch_left(project: Path) -> None:
    """What main has gained since is nobody's change here, and the work tree is not touched."""
    git(project, "checkout", "-q", "main")
    (project / "pipelines" / "later.py").write_text(DEFINITION.replace('"shop"', '"later"'))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "later")
    git(project, "checkout", "-q", "edit")
    (project / "pipelines" / "shop.py").write_text(EDITED)
    before = git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")
    found = compared(project)
    [pipeline] = found.diff.pipelines
    assert list_view_parts(pipeline.views[0]) == ["measure total: sum(amount) -> sum(amount + 1)"]
    assert found.base.commit == git(project, "rev-parse", "main~1")
    assert any("not committed" in note for note in found.notes)
    assert (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")) == before
    assert len(git(project, "worktree", "list").splitlines()) == 1


def test_each_revision_has_its_own_modules(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition that imports another file must not meet that of the other revision."""
    (project / "prices.py").write_text('AMOUNT = "amount"\n')
    text = "from prices import AMOUNT\n" + DEFINITION.replace('sum("amount")', "sum(AMOUNT)")
    (project / "pipelines" / "shop.py").write_text(text)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "a module")
    (project / "prices.py").write_text('AMOUNT = "amount * 2"\n')
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.chdir(project)
    [pipeline] = compared(project, "HEAD").diff.pipelines
    assert list_view_parts(pipeline.views[0]) == ["measure total: sum(amount) -> sum(amount * 2)"]


def test_a_broken_revision_is_told_and_stops_nothing(project: Path) -> None:
    """What is wrong with the base is the base's; what is wrong now is told beside it."""
    (project / "pipelines" / "broken.py").write_text("x =")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "broken")
    (project / "pipelines" / "broken.py").write_text(DEFINITION.replace('"shop"', '"mended"'))
    (project / "pipelines" / "worse.py").write_text("import os\nos._exit(3)\n")
    found = compared(project, "HEAD")
    assert found.diff.base_problems == ("broken.py:1: invalid syntax.",)
    assert found.diff.problems == ("the definitions could not be loaded: exit code 3",)
    (project / "pipelines" / "worse.py").unlink()
    again = compared(project, "HEAD").diff
    assert [(each.name, each.kind) for each in again.pipelines] == [("mended", PipelineChangeKind.UNKNOWN)]


def test_in_a_hook_the_work_tree_is_that_of_the_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git's hooks have variables that name a repository, and any folder is the top of its work tree then."""
    monkeypatch.setenv("GIT_DIR", str(project / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    found = compared(project)
    assert found.diff.pipelines == () and found.notes == ()


def test_a_revision_without_definitions_has_none(project: Path) -> None:
    """The first pull request of a project makes all of it new."""
    (project / "more").mkdir()
    (project / "more" / "other.py").write_text(DEFINITION)
    found = compare_with_revision((project / "more").resolve(), "main")
    assert [each.kind for each in found.diff.pipelines] == [PipelineChangeKind.ADDED]
    assert any("has no folder more" in note for note in found.notes)


def test_a_revision_that_is_not_here_is_not_found(project: Path, tmp_path: Path) -> None:
    """A workflow's clone has one commit, and says how to get the others."""
    with pytest.raises(NotFound, match="There is no revision 'nowhere'"):
        compared(project, "nowhere")
    with pytest.raises(NotFound, match="There is no revision '--all'"):
        compared(project, "--all")
    git(project, "commit", "-q", "--allow-empty", "-m", "two")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", "--branch", "edit", project.as_uri(), str(shallow))
    with pytest.raises(NotFound, match="shallow clone") as told:
        compared(shallow)
    assert "fetch-depth: 0" in told.value.hint
    git(shallow, "fetch", "-q", "--depth", "1", "origin", "main")
    found = compared(shallow, "FETCH_HEAD")
    assert found.diff.pipelines == () and any("common past" in note for note in found.notes)


def test_outside_git_there_is_nothing_to_compare_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of what is missing has its own sentence."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SetupError, match="in no git work tree"):
        find_repository(tmp_path / "not there yet")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="no git on PATH"):
        find_repository(tmp_path)


def test_files_that_git_lacks_are_told(project: Path) -> None:
    """A damaged clone must not look like a project without definitions."""
    tree = git(project, "rev-parse", "HEAD:pipelines")
    (project / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    repository = find_repository(project)
    with (
        pytest.raises(SetupError, match="git cannot write the files of"),
        repository.open_files(git(project, "rev-parse", "HEAD")),
    ):
        pass


def test_what_definitions_print_is_not_taken_for_what_they_say(project: Path) -> None:
    """A print left in a file is no fact."""
    file = project / "pipelines" / "shop.py"
    file.write_text("print('{}')\n" + DEFINITION)
    found = load_definitions(project / "pipelines", project, sys.path)
    assert [*found.pipelines] == ["shop"] and found.problems == ()
    shutil.rmtree(project / "pipelines")
    assert load_definitions(project / "pipelines", project, sys.path).pipelines == {}
