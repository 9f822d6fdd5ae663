"""What a JVM is given for a warehouse in a bucket."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seamline.model.errors import SetupError
from seamline.runtime.java import (
    BEHIND,
    class_path,
    is_in_bucket,
    list_java_parts,
    store_class_path,
    store_jars,
)


def test_the_jars_for_a_bucket_go_behind_what_somebody_has_put_there() -> None:
    """Each once, however often a process starts another."""
    once = store_class_path({BEHIND: "/opt/own.jar"})
    own, *ours = once[BEHIND].split(os.pathsep)
    assert own == "/opt/own.jar"
    assert ours == [str(jar) for jar in store_jars()]
    assert store_class_path(once) == once


def test_no_jar_for_a_bucket_is_in_front() -> None:
    """What is in front of Spark's own jars is in the archive of classes: more there, and it fits no more."""
    front = {Path(each).name for each in class_path().split(os.pathsep)}
    assert front == {part.jar for part in list_java_parts("spark")}


@pytest.mark.parametrize(
    ("place", "found"), [("s3://lake", True), ("/srv/s3", False), ("gs://lake", False), ("", False)]
)
def test_the_jars_are_for_one_kind_of_store(place: str, found: bool) -> None:
    """Of other kinds they know nothing."""
    assert is_in_bucket(place) is found


def test_a_folder_without_them_says_how_they_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain setup does not fetch them."""
    monkeypatch.setenv("SEAMLINE_JARS", str(tmp_path))
    with pytest.raises(SetupError) as problem:
        store_class_path({})
    assert "seamline setup --store" in problem.value.hint
