"""What targets hold: all of it against what is served, and one row as it was sent."""
