"""The Spark side: the epoch kernel, the stream and the build."""
