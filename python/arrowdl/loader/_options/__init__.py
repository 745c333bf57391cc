"""The checked options of a Loader: an object for each group, and their combinations."""
