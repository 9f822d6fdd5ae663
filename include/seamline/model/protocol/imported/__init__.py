"""Rows of files that become part of the log."""
