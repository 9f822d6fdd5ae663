"""Reading: versions pinned, what counts is merged, windows are presented, and how far each is right."""
