"""What there is to be read of topics and tables, beside what was read."""
