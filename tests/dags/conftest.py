"""An Airflow of the tests' own: its settings must be there before it is first imported."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

HOME = tempfile.mkdtemp(prefix="seamline-airflow-")
os.environ.update(
    AIRFLOW_HOME=HOME,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__CORE__PLUGINS_FOLDER=str(Path(__file__).parents[2] / "plugins"),
    AIRFLOW__CORE__AUTH_MANAGER="airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
    AIRFLOW__API_AUTH__JWT_SECRET="of these tests alone, and long enough for its algorithm, which wants 64 bytes of it",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
)

from tests.dags.server import client, database, shop  # noqa: E402 - after the settings, which Airflow reads when it is imported

__all__ = ["client", "database", "shop"]
