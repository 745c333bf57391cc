"""Rows of several sources by their weights."""
