"""The search for routes."""
