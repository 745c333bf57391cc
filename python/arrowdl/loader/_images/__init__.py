"""Columns of encoded images as pixels."""
