"""What a Loader will give, and how, without reading its rows."""
