"""Decisions of a stream: where it starts, its numbers, its state, its alerts."""
