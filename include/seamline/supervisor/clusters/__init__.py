"""A stream told to go on from another cluster."""
