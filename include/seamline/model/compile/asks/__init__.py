"""What is asked of other systems: compiled, and checked."""
