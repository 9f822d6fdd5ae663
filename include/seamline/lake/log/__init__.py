"""The log of epochs: the master that holds them, the ledger that lists them, and who reads both."""
