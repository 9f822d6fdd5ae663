"""What a user declares: a pipeline, its formats and its windows."""
