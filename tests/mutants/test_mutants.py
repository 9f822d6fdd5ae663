"""Each patch makes the shipped code wrong in one way that the protocol forbids, and the tests that it names fail.

A patch begins with what is wrong, the tests that find it, and words of their failure. It is applied to a copy of the
package; the tests run as they are. That they pass without it, the suite itself shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from xml.etree import ElementTree

import pytest

import seamline

HERE = Path(__file__).parent
PATCHES = sorted(path.stem for path in HERE.glob("*.patch"))
FIRST = {
    "no_txn_id",
    "batch_id_instead_of_epoch",
    "ledger_before_data",
    "cut_by_time",
    "at_the_cut_counts_twice",
    "latest_on_lost_checkpoint",
    "lease_without_fencing",
}
"""Those that this design was made against: tried with every run of the tests, the others with the slow suite."""
TRIED = [pytest.param(name, marks=[] if name in FIRST else pytest.mark.faults) for name in PATCHES]


@dataclass(frozen=True)
class Patch:
    """A mutant: ``hunks`` are lines to be found, once and together, and those that come in their place."""

    what: str
    tests: tuple[str, ...]
    says: str
    path: str
    hunks: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, name: str) -> Patch:
        """Read a patch of one file."""
        head, _, body = (HERE / f"{name}.patch").read_text().partition("--- a/")
        facts = [line.partition(": ")[::2] for line in head.splitlines()]
        found = {key: tuple(value for other, value in facts if other == key) for key, _ in facts}
        target, _, changes = body.partition("+++ b/")[2].partition("\n")
        hunks = []
        for hunk in re.split(r"^@@.*@@.*\n", changes, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            old, new = ("".join(line[1:] for line in lines if line[0] in signs) for signs in (" -", " +"))
            hunks.append((old, new))
        return cls(found["what"][0], found["test"], found["says"][0], target, tuple(hunks))

    def applied(self, text: str) -> str:
        """Return the file with the patch in it; AssertionError where its place is not there exactly once."""
        for old, new in self.hunks:
            assert text.count(old) == 1, (
                f"The patch no longer applies: {self.path} has these lines {text.count(old)} times, not once.\n{old}\n"
                "Hint: the code has changed; say there what the patch says was wrong, or delete it."
            )
            text = text.replace(old, new)
        return text


def mutated(patch: Patch, folder: Path) -> Path:
    """Copy the package, as links, with the patch in it; give the folder to import it from."""
    copy = folder / "seamline"
    copytree(Path(seamline.__file__).parent, copy, copy_function=os.link)
    target = folder / patch.path
    text = patch.applied(target.read_text())
    target.unlink()
    target.write_text(text)
    compile(text, patch.path, "exec")
    return folder


def outcomes(tests: tuple[str, ...], imported: Path, report: Path) -> ElementTree.Element:
    """Run some tests against a package in another process and give its report."""
    paths = [str(imported), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests],
        cwd=HERE.parent.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTEST_XDIST_WORKER": ""},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in (0, 1), f"The tests did not run:\n{done.stdout}\n{done.stderr}"
    return ElementTree.parse(report).getroot()


@pytest.mark.parametrize("name", TRIED)
def test_a_mutant_is_caught(name: str, tmp_path: Path) -> None:
    """A suite that a wrong protocol passes is no proof of the right one."""
    patch = Patch.read(name)
    report = outcomes(patch.tests, mutated(patch, tmp_path), tmp_path / "report.xml")
    assert not list(report.iter("error")), ElementTree.tostring(report, encoding="unicode")
    for test in patch.tests:
        path, _, function = test.partition("::")
        module = path.removesuffix(".py").replace("/", ".")
        cases = [
            case
            for case in report.iter("testcase")
            if case.get("classname") == module
            and function in (case.get("name"), (case.get("name") or "").partition("[")[0])
        ]
        assert cases, f"{test} is not there"
        words = [f"{each.get('message')}\n{each.text}" for case in cases for each in case.iter("failure")]
        assert words, f"{test} passes though: {patch.what}"
        assert any(re.search(patch.says, each) for each in words), (
            f"{test} fails, but says:\n{words[0][-3000:]}"
        )


def test_there_are_at_least_twelve() -> None:
    """Among them those that this design was made against."""
    assert len(PATCHES) >= 12
    assert set(PATCHES) >= FIRST
    assert all(Patch.read(name).what.endswith(".") for name in PATCHES)


@pytest.mark.parametrize("name", PATCHES)
def test_every_patch_applies(name: str, tmp_path: Path) -> None:
    """Whoever changes the code it is about learns of it at once."""
    patch = Patch.read(name)
    mutated(patch, tmp_path)
    re.compile(patch.says)


def test_a_patch_that_no_longer_applies_says_so() -> None:
    """Else a mutant would live on as a patch of nothing."""
    with pytest.raises(AssertionError, match="no longer applies"):
        Patch("", (), "", "seamline/x.py", (("gone\n", "new\n"),)).applied("other\n")


@pytest.mark.faults
def test_without_a_patch_the_same_tests_pass(tmp_path: Path) -> None:
    """The copy itself breaks nothing."""
    copytree(Path(seamline.__file__).parent, tmp_path / "seamline", copy_function=os.link)
    tests = tuple(sorted({test for name in PATCHES for test in Patch.read(name).tests}))
    report = outcomes(tests, tmp_path, tmp_path / "report.xml")
    assert not [*report.iter("failure"), *report.iter("error")]
