"""The log of epochs: the master that contains them, the ledger that lists them, and who reads both."""
