"""What a rebuild would change of published numbers, made here and now of a few intervals; nothing is written."""
