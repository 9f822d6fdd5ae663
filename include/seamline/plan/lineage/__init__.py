"""What lineage says: datasets, columns and runs, in the words of OpenLineage."""
