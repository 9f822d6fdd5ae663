"""The pure core: definitions, measures, windows, offsets and the seam; imports no engine."""
