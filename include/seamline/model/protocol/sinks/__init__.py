"""What sinks and serving tables promise each other (rule 32)."""
