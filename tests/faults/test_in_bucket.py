"""The product with its warehouse in a bucket: what is tested in a folder, in `make test`, is tested there as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.services.inner_run import OUTER

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
ROOT = Path(__file__).parents[2]
READING = "tests/unit/lake/read"
SERVING = "tests/unit/serve"
PARTS = {
    "upkeep and retention": ["tests/unit/lake/maintain"],
    "certificates and reports": ["tests/unit/quality/test_reports.py"],
    "answers and serving tables": [
        f"{READING}/test_reads.py",
        f"{READING}/test_serving.py",
        f"{READING}/test_decorations.py",
        f"{READING}/sinks/test_served_changes.py",
    ],
    "generations and upgrades": [
        "tests/unit/lake/publish/test_history.py",
        "tests/unit/lake/publish/test_despite.py",
        f"{SERVING}/test_differences.py",
        f"{SERVING}/test_upgrade.py",
    ],
    "audits and comparisons": ["tests/unit/lake/audit", "tests/unit/lake/tables/test_comparing.py"],
    "explanations, refused records and BI": [
        f"{SERVING}/test_explain.py",
        f"{SERVING}/test_refused_samples.py",
        f"{SERVING}/test_bi.py",
    ],
    "sinks into files": [
        "tests/unit/sinks/files/test_file_audits.py",
        "tests/unit/sinks/files/test_folders_again.py",
    ],
    "a start that sets the end of the master aside": [
        "tests/protocol/test_repair.py::test_nothing_is_built_or_published_before_a_start_has_repaired"
    ],
    "savepoints, restores and forks": ["tests/unit/cli/test_operations.py"],
    "commands and metrics": ["tests/unit/cli/test_cli.py", "tests/unit/cli/test_metrics.py"],
    "pages, the HTTP API, its client, and orders": [
        "tests/dags/test_pages.py",
        "tests/dags/test_api.py",
        "tests/dags/test_client.py",
        "tests/dags/test_orders.py",
    ],
}
"""What docs/stores.md says works in a bucket, with its tests."""


@pytest.mark.parametrize("part", PARTS)
def test_what_works_in_a_folder_works_in_a_bucket(part: str, tmp_path: Path) -> None:
    """Each of these has code of its own for what it keeps; a path that is joined as text works on a disk alone."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'inner'}",
    ]
    done = subprocess.run(
        [*command, "--in-bucket", "--bucket-of", "versitygw", "-m", "not faults", *PARTS[part]],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not OUTER.match(name)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "[bucket" in done.stdout
