"""What the stream's driver says of its lineage."""
