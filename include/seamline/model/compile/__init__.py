"""Definitions made ready for the engines: types, expressions, versions, problems."""
