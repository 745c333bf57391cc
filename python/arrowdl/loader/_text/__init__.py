"""Columns of text as the ids of tokens."""
