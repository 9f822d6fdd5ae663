"""How a view's numbers are drawn: scales, heat maps, small charts, two ranges, and where each number comes from."""
