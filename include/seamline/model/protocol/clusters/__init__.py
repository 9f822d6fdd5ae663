"""A stream that goes on from another cluster, or finds that a cluster has lost what was read."""
