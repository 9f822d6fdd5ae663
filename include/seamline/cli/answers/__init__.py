"""Commands that answer in a language of their own."""
