"""Intervals as Airflow knows them: partitions of an asset, runs that begin when one has closed, links of tasks."""
