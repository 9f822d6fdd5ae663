"""`seamline demo`: a year of flights through a real broker, both layers and Airflow, with one certified answer."""
