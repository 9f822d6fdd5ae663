"""Commands about what goes to other systems."""
