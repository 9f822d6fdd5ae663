"""Writers' schemas: what a registry has of them, how a record names one, and what of protobuf fits a reader."""
