"""Traces of epochs and builds, by the official SDK of OpenTelemetry, where a collector is configured."""
