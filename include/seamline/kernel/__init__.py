"""What a task does with raw records: decode, judge, count. DuckDB and Arrow only, for whoever calls it."""
