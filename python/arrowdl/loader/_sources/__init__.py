"""What a source of rows is, tables in memory, and wrappers of sources."""
