"""Patterns over the rows of a key: SQL's MATCH_RECOGNIZE, as a process function."""
