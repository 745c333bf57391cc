"""Rows by their numbers: gathers, a cache of decoded row groups, `MapDataset`."""
