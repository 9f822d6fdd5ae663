"""The process that sends what is served to other systems, kept by the supervisor."""
