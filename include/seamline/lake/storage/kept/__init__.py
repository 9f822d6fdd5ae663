"""Tables that a process keeps open between reads, asked side by side where a look is a request, and followed."""
