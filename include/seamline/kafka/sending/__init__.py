"""Topics that are written in transactions, and read as consumers of committed records do."""
