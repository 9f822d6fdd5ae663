"""What a task does with raw records: decode, validate, count. DuckDB and Arrow only, for whoever calls it."""
