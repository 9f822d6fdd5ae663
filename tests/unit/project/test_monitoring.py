"""Alert rules and the dashboard ask for metrics and labels that are exported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seamline.supervisor.metrics.registry import ALL_FAMILIES

FOLDER = Path(__file__).parents[3] / "docs" / "monitoring"
LABELS = {each.name: {"pipeline", *each.labels} for each in ALL_FAMILIES}
NAME = re.compile(r"\bseamline_[a-z_]+")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def list_rules() -> list[dict[str, Any]]:
    """List the alert rules."""
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def list_questions() -> Iterator[tuple[str, str]]:
    """List what is asked of Prometheus, each with the text that shows it."""
    for rule in list_rules():
        yield rule["expr"], " ".join(rule["annotations"].values())
    for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


@pytest.mark.parametrize(("asked", "shown"), [*list_questions()])
def test_metrics_and_their_labels_are_exported(asked: str, shown: str) -> None:
    """A metric that is renamed would leave an alert that never comes."""
    names = NAME.findall(asked)
    assert names
    assert {*names} <= {*LABELS}
    # What is matched by "on" adds no labels.
    kept = NAME.findall(asked.partition(" and on(")[0])
    labels = set.intersection(*(LABELS[name] for name in kept))
    assert {*SHOWN.findall(shown)} - {"value"} <= labels


def test_every_alert_says_what_to_do() -> None:
    """And how bad it is; each has a name of its own."""
    rules = list_rules()
    assert len({each["alert"] for each in rules}) == len(rules)
    for each in rules:
        assert each["labels"]["severity"] in ("warning", "critical")
        assert set(each["annotations"]) == {"summary", "action"}
