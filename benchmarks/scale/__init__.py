"""A model of scale: what a workload costs, which resource ends first, and which setting moves that."""
