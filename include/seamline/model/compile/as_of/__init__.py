"""As-of joins: what a definition says of them, and the views of their rows."""
