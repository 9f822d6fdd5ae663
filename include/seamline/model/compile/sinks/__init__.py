"""Sinks in a definition: what is wrong with them, and the view that each sends."""
