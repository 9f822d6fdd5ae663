"""Commands about a definition itself."""
