"""Versions of Delta Lake and Iceberg tables."""
