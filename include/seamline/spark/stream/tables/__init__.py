"""Reading Delta tables that others append to, between the micro-batches of topics."""
