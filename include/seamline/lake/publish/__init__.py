"""Runs planned and published: flips, rollbacks, forks, restated look-ups."""
