"""What sinks send: the difference between two versions of a serving table."""
