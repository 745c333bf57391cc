"""Datasets and objects of other libraries."""
