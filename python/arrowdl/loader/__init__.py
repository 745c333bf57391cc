"""`Loader`: any Arrow source as batches of tensors for training.

The layers, from low to high. A module imports only modules of its own layer or of a lower one, also
under ``TYPE_CHECKING`` and inside functions, and modules of one layer form no circle:

    _types, _skipped, _stats, _progress, _columns, _packing, _options
                     option types, skipped rows, counters, progress bar, checked options
    _sources         what can be read: tables, files, datasets, streams
    _tally           counts and logs the rows that are skipped
    _epoch           which rows a rank reads, in which order, from which state
    _batches         Arrow batches to tensors: convert, pad, pin, pack, copy to a device
    _workers         worker processes and their shared memory
    _pipeline        one share of an epoch as batches, read here or by worker processes
    _random_access   rows by their numbers: gathers, decoded row groups, map-style dataset
    _reader          epoch after epoch, with states
    _integrations    adapters for other libraries: torch, Grain
    _loader          `Loader`, the public class
"""

from arrowdl.loader._loader import Loader
from arrowdl.loader._packing import Pack
from arrowdl.loader._random_access.map_dataset import MapDataset
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._stats import Stats

__all__ = ["Loader", "MapDataset", "Pack", "Skipped", "Stats"]
