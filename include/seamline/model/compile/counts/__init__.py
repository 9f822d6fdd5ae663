"""Producers' counts in a definition: what is wrong with them, and which views they concern."""
