"""Producers' statements of how many records they have sent."""
