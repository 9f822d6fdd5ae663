"""Imports planned, asked for, listed, and run where no stream runs."""
