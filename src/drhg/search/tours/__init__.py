"""The search for tours."""
