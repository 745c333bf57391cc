"""The value objects that a `Loader` takes, one a file, and how they become its options."""
