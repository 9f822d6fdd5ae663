"""Decisions about a change of definitions before it is made: what becomes new, and which numbers would change."""
