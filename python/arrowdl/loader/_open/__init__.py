"""Chooses the source that reads what a Loader was given."""
