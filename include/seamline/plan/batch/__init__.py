"""Decisions of a batch run: which intervals, why, to which cut, and how the work is shared."""
