"""Trials: what can be measured, at given sizes."""
