"""Which rows an epoch gives to which rank, in which order, from which state."""
