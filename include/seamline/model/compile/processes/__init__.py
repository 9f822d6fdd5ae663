"""Process functions made ready for the engines: their rows, keys and columns, and what is wrong with them."""
