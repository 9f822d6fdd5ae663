"""A whole warehouse moved to another place: copied, verified, and closed where it was."""
