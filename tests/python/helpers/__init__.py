"""What the tests share: C structs made by hand, and producers that count their releases."""
