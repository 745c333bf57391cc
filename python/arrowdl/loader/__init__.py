"""`Loader`: any Arrow source as batches of tensors for training.

Its layers are in python/README.md.
"""

from arrowdl.loader._audio.audio import Audio
from arrowdl.loader._files.file_plan import FilePlan
from arrowdl.loader._images.image import Image
from arrowdl.loader._loader import Loader
from arrowdl.loader._look.batch_schema import BatchSchema, TensorSpec
from arrowdl.loader._look.explain import Explanation
from arrowdl.loader._random_access.map_dataset import MapDataset
from arrowdl.loader._settings.buckets import Buckets
from arrowdl.loader._settings.pack import Pack
from arrowdl.loader._settings.padded import Padded
from arrowdl.loader._settings.ranks import Ranks
from arrowdl.loader._settings.report import Report
from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._settings.seed import Seed
from arrowdl.loader._settings.shuffle import Shuffle
from arrowdl.loader._settings.skip import Skip
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._settings.tokens import Tokens
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._stats import Stats
from arrowdl.loader._text.tokenize import Tokenize

__all__ = [
    "Audio",
    "BatchSchema",
    "Buckets",
    "Explanation",
    "FilePlan",
    "Image",
    "Loader",
    "MapDataset",
    "Pack",
    "Padded",
    "Ranks",
    "Report",
    "Retries",
    "Seed",
    "Shuffle",
    "Skip",
    "Skipped",
    "Stats",
    "Storage",
    "TensorSpec",
    "Tokenize",
    "Tokens",
]
