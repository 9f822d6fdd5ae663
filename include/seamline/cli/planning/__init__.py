"""Commands that show what would be, and change nothing."""
