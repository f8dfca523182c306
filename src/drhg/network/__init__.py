"""The learned repairer: its files, its compiled and torch forms, its decisions."""
