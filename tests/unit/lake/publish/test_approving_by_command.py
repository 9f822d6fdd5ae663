"""`seamline publish --approve`: a person looks at what a rebuild changes, and says yes to that run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.past import DAYS, build
from tests.unit.shop import DAY, DEFINITION, START, Sale, opened, sales_pipeline

from seamline.cli import main
from seamline.model.errors import NotApproved
from seamline.quality.run_comparing import compare_run

pytestmark = pytest.mark.slow


def test_a_correction_waits_for_who_has_seen_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a rebuild of it a copy would count for ever; with one nobody asked, a number halves overnight."""
    shop = opened(tmp_path, monkeypatch)
    limited = DEFINITION.replace('start="2013-01-01"', 'start="2013-01-01", approve_change=0.2')
    (tmp_path / "definitions" / "shop.py").write_text(limited)
    shop.epoch([Sale(1, "a", 4), Sale(2, "b", 5)], watermark=START + 2 * DAY)
    build(shop, "one", cut=0)
    shop.epoch([Sale(3, "a", 4, id=0)], watermark=START + 2 * DAY)
    # A build does not count the copy, which the slices above the first cut do.
    shop.events[1].clear()
    build(shop, "two", cut=1, publish=False)
    pipeline = sales_pipeline(text=limited)
    [found] = compare_run(pipeline, shop.layout, "run-two")
    assert found.measures["total"].most == pytest.approx(-0.5)

    argv = ["publish", "shop", "--run", "run-two"]
    assert main(argv) == NotApproved.exit_code
    said = capsys.readouterr()
    assert f"held back {DAYS[0]}: it changes answers by 50.0%" in said.out
    assert "seamline publish shop --run run-two --approve --reason" in said.err
    assert main([*argv, "--approve"]) == 2
    assert "need --reason" in capsys.readouterr().err
    assert main([*argv, "--approve", "--reason", "copies of an import"]) == 0
    assert "two cut 1" in capsys.readouterr().out
    stated = shop.manifest.read().published[shop.view.id, DAYS[0]]
    assert (stated.generation, stated.reason) == ("two", "copies of an import")
    assert stated.actor.startswith("cli:") and stated.certified
    assert main(argv) == 0
    assert "it had been before" in capsys.readouterr().out
