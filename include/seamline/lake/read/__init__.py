"""Reading: versions pinned, what counts is merged, windows are presented."""
