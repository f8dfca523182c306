"""Strategies: loops that improve a solution."""
