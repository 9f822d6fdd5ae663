"""Every definition becomes its batch, stream and upkeep DAGs (airflow looks for these two words: dag, airflow)."""

from seamline.orchestration.dags import parsed_dags

globals().update(parsed_dags())
