"""Sinks beside a warehouse: the versions of serving tables that they compare, and copies of where they stand."""
