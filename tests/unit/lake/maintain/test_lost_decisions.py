"""A control table that came back from a backup alone, without restatements that something was made with."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.maintain.repair import find_contradictions
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.readiness import require_known_decisions
from seamline.model.errors import OutOfStep, PublishRefused
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.spark.stream.epoch_writer import Writer
from seamline.supervisor.repairing import repair_pipeline

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Interval(parse_moment("2013-01-01"), parse_moment("2013-02-01"))
DECISION = Restatement("cities", "new", ALL, 0, "ada", "moved", NOW)
YES = Acceptance("ada", "it is gone")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop whose control table was copied before somebody restated."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1)])
    control = ControlTable.ensure(made.layout)
    shutil.copytree(made.layout.table("control"), tmp_path / "backup")
    control.restate(DECISION)
    return made


def bring_back(shop: Shop, folder: Path) -> None:
    """Bring the control table back from the copy."""
    place = shop.layout.table("control")
    shutil.rmtree(place)
    shutil.copytree(folder / "backup", place)


def test_what_is_served_with_a_lost_restatement_is_withdrawn_by_a_person_alone(
    shop: Shop, tmp_path: Path
) -> None:
    """The next restatement would have its number, and nothing would be built for it."""
    day = build(shop, "g", cut=0, publish=False)
    shop.state(Act.PUBLISH, epoch=0, interval=day.id, generation="g", rows=1, restated=1)
    assert list(find_contradictions(shop.layout)) == []
    bring_back(shop, tmp_path)
    [why] = [each for each in find_contradictions(shop.layout) if "restatements" in each]
    assert "made with 1 restatements, but the control table has 0" in why
    with pytest.raises(OutOfStep, match="made with 1 restatements"):
        Writer(shop.layout, shop.compiled, 9)
    repair_pipeline(shop.compiled, shop.layout, YES)
    assert not manifest_of(shop.layout).published
    assert not [each for each in find_contradictions(shop.layout) if "restatements" in each]


def test_what_was_built_with_a_lost_restatement_is_not_published(shop: Shop, tmp_path: Path) -> None:
    """It would be what nobody has decided on."""
    day = build(shop, "g", cut=0, publish=False)
    require_known_decisions(shop.layout, 1, "g")
    bring_back(shop, tmp_path)
    with pytest.raises(PublishRefused, match="Generation g was made with 1 restatements, .* has 0"):
        require_known_decisions(shop.layout, 1, "g")
    assert day.id not in {interval for _, interval in manifest_of(shop.layout).published}


def test_what_epochs_name_has_to_come_back(shop: Shop, tmp_path: Path) -> None:
    """Slices of joined rows are made with it, and nobody can tell what it was: no repair goes on without it."""
    writer = Writer(shop.layout, shop.compiled, 5)
    epoch = Epoch(writer.take_number(), 5, NOW, shop.compiled.record_version, restated=1)
    writer.commit(epoch, KernelResult(), writer.current)
    shutil.copytree(shop.layout.table("control"), tmp_path / "whole")
    bring_back(shop, tmp_path)
    assert any("epochs name 1 restatements" in each for each in find_contradictions(shop.layout))
    with pytest.raises(OutOfStep, match="epochs name 1 restatements"):
        Writer(shop.layout, shop.compiled, 9)
    with pytest.raises(OutOfStep, match="epochs name 1 restatements") as refused:
        repair_pipeline(shop.compiled, shop.layout, YES)
    assert "bring the control table back" in refused.value.hint
    shutil.rmtree(shop.layout.table("control"))
    shutil.copytree(tmp_path / "whole", shop.layout.table("control"))
    Writer(shop.layout, shop.compiled, 9)
