"""The definitions of a revision in git: read without touching the work tree, and loaded in a process of their own."""
