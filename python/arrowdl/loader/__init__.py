"""The loader: any Arrow source as batches of tensors for training."""

from arrowdl.loader._loader import Loader, Stats

__all__ = ["Loader", "Stats"]
