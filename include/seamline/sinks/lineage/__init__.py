"""What sinks tell of their lineage, where a server of OpenLineage is configured."""
