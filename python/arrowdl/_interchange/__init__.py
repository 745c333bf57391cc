"""The dataframe interchange protocol, in both directions."""
