"""Arrow batches to tensors: convert, pad, pin, pack, copy to a device."""
