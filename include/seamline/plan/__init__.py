"""Pure decisions: they return what to do and do nothing."""
