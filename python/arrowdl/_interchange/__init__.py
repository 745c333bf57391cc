"""The dataframe interchange protocol: import and export of frames."""
