"""Pipelines in SQL: statements of a file become the frozen objects of a definition."""
