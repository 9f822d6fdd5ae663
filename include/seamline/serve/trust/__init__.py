"""What intervals and published answers are worth."""
