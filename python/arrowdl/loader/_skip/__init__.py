"""Rows that cannot be read: numbered, left out and counted."""
