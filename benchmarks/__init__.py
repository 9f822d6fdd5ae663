"""Every figure in the docs comes from here."""
