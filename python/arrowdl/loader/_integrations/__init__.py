"""The Loader as other libraries take it."""
