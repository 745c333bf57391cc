"""The dataframe interchange protocol: import of frames."""
