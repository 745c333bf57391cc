"""From an Arrow batch to tensors."""
