"""Rows that are joined, read from the log."""
