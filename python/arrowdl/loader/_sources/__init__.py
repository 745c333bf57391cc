"""What the Loader reads: tables, streams, datasets and files."""
