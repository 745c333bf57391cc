"""`Loader`: any Arrow source as batches of tensors for training.

Its layers are in python/README.md.
"""

from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._loader import Loader
from arrowdl.loader._packing import Pack
from arrowdl.loader._random_access.map_dataset import MapDataset
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._stats import Stats
from arrowdl.loader._storage.retries import Retries

__all__ = ["FilePlan", "Loader", "MapDataset", "Pack", "Retries", "Skipped", "Stats"]
