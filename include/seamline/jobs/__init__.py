"""The processes that Spark and Airflow start: each is a module to be run."""
