"""The build: states of whole intervals from the master's rows."""
