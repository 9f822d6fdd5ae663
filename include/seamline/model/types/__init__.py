"""The types of columns, and values that keep every digit."""
