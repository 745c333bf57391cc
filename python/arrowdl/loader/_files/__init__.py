"""Files by their names: found, compared with what they were, named in errors."""
