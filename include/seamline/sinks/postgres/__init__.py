"""Tables of PostgreSQL that are kept as views show them: types, tables, copies, transactions."""
