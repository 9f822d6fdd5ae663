"""What the tasks of a batch run tell of its lineage."""
