"""Dead letters: records of the log that a topic is sent, each once, and how they are produced again."""
