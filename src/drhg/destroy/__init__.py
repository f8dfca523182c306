"""What to cut."""
