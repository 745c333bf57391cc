"""Which rows a rank reads in an epoch, in which order, from which state."""
