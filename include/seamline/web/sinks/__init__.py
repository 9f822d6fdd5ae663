"""The pages of what goes to other systems."""
