"""The Spark side: the stream and the build, whose tasks run the kernel."""
