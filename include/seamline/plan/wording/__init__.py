"""Decisions in words: for the command line, logs and pages."""
