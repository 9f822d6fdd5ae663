"""What the driver keeps of the rows from which others are derived, and what epochs add to those."""
