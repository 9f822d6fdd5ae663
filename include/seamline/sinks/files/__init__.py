"""Files that have the changed rows of views: manifests, rows as Parquet and JSON, and their merging."""
