"""What processes say of a stream: in files of one machine, and in a bucket in objects that every machine reads."""
