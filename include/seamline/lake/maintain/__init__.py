"""Upkeep and repair: compaction, packing, retention, clean-up, and what a start repairs."""
