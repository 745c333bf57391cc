"""`AdaptedReader`: the batches and rows of a Loader as datasets of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arrowdl.loader._checks import require_bool, require_int
from arrowdl.loader._random_access.map_dataset import MapDataset, open_map_dataset
from arrowdl.loader._reader import EpochReader

if TYPE_CHECKING:
    from grain import IterDataset
    from torch.utils.data import IterableDataset


class AdaptedReader(EpochReader):
    """Offers a source as datasets: the part of `Loader` for samplers and other loaders."""

    def torch_dataset(self, *, valid_rows: bool = False) -> IterableDataset[Any]:
        """Return an ``IterableDataset`` of whole batches, for ``DataLoader(batch_size=None)``.

        The worker processes of a DataLoader share the rows of this rank. With workers, each
        iteration of the DataLoader is the next epoch, counted from the epoch of this loader; the
        loader itself does not advance, and its state does not know theirs. torchdata's
        ``StatefulDataLoader`` keeps their states.

        Parameters
        ----------
        valid_rows : bool
            Whether to return pairs, of a batch and its `valid_rows`, which are known where the
            batch was read: in a worker process.

        Returns
        -------
        torch.utils.data.IterableDataset
        """
        from arrowdl.loader._integrations.torch import TorchDataset

        return TorchDataset(self, valid_rows=require_bool("valid_rows", valid_rows))

    def map_dataset(self, *, cache_bytes: int = 2**29) -> MapDataset:
        """Return the rows by their numbers, as a map-style dataset: for samplers.

        Row numbers are those of the source in its own order, after `filter`. `shuffle` and `ranks`
        of the loader do not apply: a sampler chooses the rows. Batches have as many rows as are
        requested.

        Parameters
        ----------
        cache_bytes : int
            Bytes of decoded row groups, of files that are not mapped, that each process caches: the
            groups that were used last, and at least one; 0 caches none. If rows in random order
            come from more row groups than that, a group is decoded for almost every row.

        Returns
        -------
        arrowdl.loader.MapDataset

        Raises
        ------
        TypeError
            The source is a stream, whose rows can only be read in order, or a mixture; or the
            loader packs rows.
        ValueError
            `cache_bytes` is not a number of bytes.
        RuntimeError
            The loader was closed.
        """
        number = require_int("cache_bytes", cache_bytes, 0)
        if self._is_closed:
            raise RuntimeError("this Loader was closed: make a new one")
        return open_map_dataset(
            self._pipeline, self.batch_size if self._options.pad_last else 1, number
        )

    def grain_dataset(self) -> IterDataset[Any]:
        """Return a ``grain.IterDataset`` of whole batches, whose iterators have states.

        Returns
        -------
        grain.IterDataset
        """
        from arrowdl.loader._integrations.grain import GrainDataset

        return GrainDataset(self)
