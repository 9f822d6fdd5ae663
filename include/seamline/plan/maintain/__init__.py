"""Decisions of upkeep and repair: what is merged, packed, deleted or repaired."""
