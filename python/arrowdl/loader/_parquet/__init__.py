"""Parquet files, and other datasets of pyarrow, read by row groups."""
