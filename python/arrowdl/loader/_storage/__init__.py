"""File systems beyond the local one: URLs, retries, checks of changed files."""
