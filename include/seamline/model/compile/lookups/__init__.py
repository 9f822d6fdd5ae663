"""Look-ups made ready for the engines: tables of rows, and sources whose records are rules."""
