"""Decisions of a publication: what the manifest accepts, and what a rollback serves."""
