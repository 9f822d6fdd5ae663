"""States in DuckDB: scans, measures, panes, windows and sessions."""
