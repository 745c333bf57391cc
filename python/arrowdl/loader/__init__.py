"""The loader: any Arrow source as batches of tensors for training."""

from arrowdl.loader._loader import Loader
from arrowdl.loader._stats import Stats

__all__ = ["Loader", "Stats"]
