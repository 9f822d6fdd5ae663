"""Producers' counts: what they say that they have sent, beside what was read."""
