"""Great Expectations suites and the certificate of a generation."""
