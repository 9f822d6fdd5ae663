"""Reading: versions pinned, what counts merged, windows presented and judged."""
