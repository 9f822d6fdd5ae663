"""The tables: every Delta commit goes through here."""
