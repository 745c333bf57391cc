"""Worker processes and the batches that come from them."""
