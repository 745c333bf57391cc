"""Columns of encoded audio as samples."""
