"""One Spark session as every job of ours wants it, and how its processes talk."""
