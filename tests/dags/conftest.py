"""An Airflow of the tests' own: its settings must be there before it is first imported."""

from __future__ import annotations

import os
import tempfile

HOME = tempfile.mkdtemp(prefix="seamline-airflow-")
os.environ.update(
    AIRFLOW_HOME=HOME,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME}/airflow.db",
)
