"""Where a view's answer goes beside its tables: topics, and other systems that hold the newest row of each key."""
