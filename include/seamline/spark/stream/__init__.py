"""The stream's driver: every micro-batch becomes one epoch."""
