"""The process that asks another system about a pipeline's rows, and writes the answers to a topic."""
