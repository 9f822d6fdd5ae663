"""The chart as Helm renders it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.services.programs import find_program

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "seamline"
AIRFLOW = "values-airflow"
EXAMPLES = sorted(file.stem for file in (CHART / "examples").glob("*.yaml") if file.stem != AIRFLOW)
KUBERNETES = "1.33.0"
LEAST = "pipelines: [{name: orders}]\nwarehouse: s3://lake/warehouse\nkafka: {existingSecret: kafka}\n"
WORKLOADS = ("CronJob", "Deployment", "StatefulSet")


@dataclass(frozen=True)
class Rendered:
    """What Helm made of some values, or why it made nothing."""

    text: str
    """The documents."""
    refusal: str
    """What it said where it refused."""

    @property
    def documents(self) -> list[dict[str, Any]]:
        """List the objects."""
        return [each for each in yaml.safe_load_all(self.text) if each]

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        """List the objects of some kinds."""
        return [each for each in self.documents if each["kind"] in kinds]

    def pods(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """List the pods that would run: the template of each workload by its name, and that of executors."""
        for each in self.of_kind(*WORKLOADS):
            spec = each["spec"]["jobTemplate"]["spec"] if each["kind"] == "CronJob" else each["spec"]
            yield f"{each['kind']} {each['metadata']['name']}", spec["template"]
        for each in self.of_kind("ConfigMap"):
            yield "executor", yaml.safe_load(each["data"]["executor.yaml"])


def run_helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm."""
    return subprocess.run(
        [find_program("helm"), *words], capture_output=True, text=True, check=False, timeout=120
    )


def render(values: Path, *more: str, chart: Path = CHART, release: str = "seamline") -> Rendered:
    """Render the chart with a file of values."""
    done = run_helm("template", release, chart, "--namespace", "data", "--kube-version", KUBERNETES,
                    "--values", values, *more)  # fmt: skip
    return Rendered(done.stdout, done.stderr if done.returncode else "")


def example(name: str) -> Path:
    """Locate the values of an example."""
    return CHART / "examples" / f"{name}.yaml"
