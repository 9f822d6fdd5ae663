"""What waits for a person in Airflow after it was built: how much it changes."""
