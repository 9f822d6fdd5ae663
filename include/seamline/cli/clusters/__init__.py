"""Commands about the cluster that a stream reads."""
