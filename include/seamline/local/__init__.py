"""What a laptop needs to run everything: Java, a broker, Airflow, the demo."""
