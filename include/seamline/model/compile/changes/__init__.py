"""Changelogs made ready for the engines: records that are changes of a table's rows."""
