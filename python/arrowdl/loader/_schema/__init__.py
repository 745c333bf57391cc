"""What columns are: their names, types, vocabularies, and filters on them."""
