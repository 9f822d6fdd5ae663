"""Process functions: a user's class that is given the rows of a key in order of event time, with state and timers."""
