"""Adapters of the Loader for other libraries."""
