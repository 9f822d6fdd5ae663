"""Intervals as Airflow knows them: partitions of an asset, and runs that begin when one has closed."""
