"""Contracts: what a definition promises to those who send records and to those who read answers."""
