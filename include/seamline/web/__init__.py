"""The HTTP API and the pages, inside Airflow's API server and behind its login."""
