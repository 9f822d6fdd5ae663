"""Answers that are no page of JSON: all rows as they are made, and tools for agents."""
