"""Lineage told to a server of OpenLineage, by its official client, where one is configured."""
