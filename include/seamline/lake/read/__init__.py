"""Reading: versions pinned, what counts merged, windows presented, and how far each is right."""
