"""`seamline init`: a project as a team keeps it, written from templates."""
