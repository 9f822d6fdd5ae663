"""Imports of files, by the stream's driver or by a run of their own."""
