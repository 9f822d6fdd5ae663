"""Who owns a stream's driver process: lease, heartbeat, start and stop."""
