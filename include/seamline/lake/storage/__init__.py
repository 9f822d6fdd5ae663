"""Delta tables on a file system: their logs, files, settings and commits."""
