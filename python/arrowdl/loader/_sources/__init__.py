"""What a Loader reads: tables, files, datasets, streams."""
