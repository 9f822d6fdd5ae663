"""Derived rows of any kind made ready for the engines."""
