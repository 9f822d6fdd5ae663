"""Answers: read, query, explain."""
