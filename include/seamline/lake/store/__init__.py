"""Where a warehouse is: folders of this machine, or a bucket of an object store."""
