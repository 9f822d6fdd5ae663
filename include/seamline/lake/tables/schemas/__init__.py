"""Writers' schemas that are kept in the warehouse: a stream asks a registry for each once, and nobody else asks."""
