"""Questions in SQL over the merged answers of views."""
