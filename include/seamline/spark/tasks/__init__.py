"""Work inside Spark's tasks: the kernel, aggregates, and how attempts at them fail."""
