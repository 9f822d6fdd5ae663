"""Keys of Redis or Valkey that are kept as views show them: keys, values, scripts."""
