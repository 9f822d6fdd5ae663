"""Every definition becomes its batch, stream, upkeep and audit DAGs (Airflow looks for two words: dag, airflow)."""

from seamline.orchestration.dags import parsed_dags

globals().update(parsed_dags())
