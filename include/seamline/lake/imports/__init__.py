"""Imports: rows of files that others have written, found, planned and read as raw records"""
