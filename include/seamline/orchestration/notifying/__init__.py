"""What Airflow's notifiers are told."""
