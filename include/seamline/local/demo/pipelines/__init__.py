"""What the demo runs: the definition that a checkout has in include/pipelines."""
