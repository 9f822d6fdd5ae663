"""What is seen at one look: all pipelines, one as a graph, its intervals by years, what has happened."""
