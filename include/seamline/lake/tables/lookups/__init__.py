"""Look-ups by version: tables that somebody keeps, and tables of rules that topics make."""
