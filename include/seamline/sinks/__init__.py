"""What is shown goes to other systems: serving tables are the outbox, and each target knows where it stands."""
