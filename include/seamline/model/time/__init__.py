"""Time: intervals, the clocks of zones, and the arithmetic of windows."""
