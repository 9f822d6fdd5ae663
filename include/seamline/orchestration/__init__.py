"""Airflow: a definition's DAGs, tasks, assets and the interval of a run."""
