"""What the log knows of records that another cluster may have too."""
