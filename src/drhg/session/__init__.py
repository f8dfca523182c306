"""Sessions: one solve from its limits to its result."""
