"""Arrow and DLPack, one bridge, every device."""
