"""What is measured of pipelines, as Prometheus reads it."""
