"""Numbers made again from the records, and compared with what is served."""
