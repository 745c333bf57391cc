"""A `Loader` over shards of a Ray dataset: Ray reads and moves the blocks, arrowdl makes batches.

Ray's own ``iter_batches(batch_size)`` puts every batch together anew. Here the Arrow blocks are
read where they lie in the object store, which nobody may write to: batches in their order are
copies of the rows, or with ``writable=False`` slices of the blocks. A block is given back to Ray
when no batch is made of it any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from arrowdl.loader import Loader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ShardLoader", "get_dataset_loader"]

_TENSOR_EXTENSIONS = ("ray.data.arrow_tensor", "ray.data.arrow_tensor_v2")


class ShardLoader(Loader):
    """A `Loader` over one worker's shard of a Ray dataset.

    Parameters
    ----------
    shard : ray.data.DataIterator or ray.data.Dataset
        Of ``Dataset.streaming_split(n, equal=True)`` or ``ray.train.get_dataset_shard()``: with
        `equal` all ranks have the same number of rows, and of batches.
    batch_size : int
        Rows of a batch on this worker.
    **options
        As of `Loader`, but for `rank` and `world_size`: the shard is this rank's already.
        `shuffle` permutes windows of it; the order of the blocks is Ray's.

    Notes
    -----
    An epoch begins when all shards of a split ask for it, as everywhere in Ray.
    """

    def __init__(self, shard: Any, batch_size: int, **options: Any) -> None:
        if not hasattr(shard, "iter_batches"):
            raise TypeError(
                f"{type(shard).__name__} has no iter_batches: give a shard of "
                "Dataset.streaming_split() or of ray.train.get_dataset_shard(), or a Dataset"
            )
        if "rank" in options or "world_size" in options:
            raise ValueError("rank and world_size are Ray's here: the shard is that of one rank")
        super().__init__(partial(_read_blocks, shard), batch_size, rank=0, world_size=1, **options)

    def state_dict(self) -> dict[str, Any]:
        """Where this loader stands, for reading; it cannot go on there: see `load_state_dict`."""
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> NoReturn:
        """Not supported: Ray deals the blocks anew in each epoch.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            "Ray deals the blocks of a dataset to the shards anew in each epoch, so that rows "
            "would be missing or come twice: resume at the start of an epoch, or give a Loader the "
            "files themselves"
        )


def get_dataset_loader(batch_size: int, dataset_name: str = "train", **options: Any) -> ShardLoader:
    """A loader over this Ray Train worker's shard of the dataset `dataset_name`.

    Parameters
    ----------
    batch_size : int
        Rows of a batch on this worker.
    dataset_name : str
        As in ``datasets=`` of the trainer.
    **options
        As of `ShardLoader`.
    """
    import ray.train

    return ShardLoader(ray.train.get_dataset_shard(dataset_name), batch_size, **options)


def _read_blocks(shard: Any) -> Iterator[pa.RecordBatch]:
    blocks = iter(shard.iter_batches(batch_size=None, batch_format="pyarrow"))
    while (table := next(blocks, None)) is not None:
        batches = _use_fixed_shapes(table).to_batches()
        del table  # nothing here holds a block when its last batch is out
        batches.reverse()
        while batches:
            yield batches.pop()


def _use_fixed_shapes(table: pa.Table) -> pa.Table:
    """Ray's tensors of one shape as Arrow's, zero-copy: the same values under a known name."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if getattr(field.type, "extension_name", None) in _TENSOR_EXTENSIONS:
            chunks = [_use_fixed_shape(chunk) for chunk in table.column(i).chunks]
            if chunks:
                column = pa.chunked_array(chunks)
                table = table.set_column(i, field.with_type(column.type), column)
    return table


def _use_fixed_shape(array: Any) -> Any:
    import pyarrow as pa

    shape = tuple(array.type.shape)
    storage = array.storage
    if storage.null_count:
        return array
    size = 1
    for extent in shape:
        size *= extent
    rows = pa.FixedSizeListArray.from_arrays(storage.flatten(), size)
    kind = pa.fixed_shape_tensor(storage.type.value_type, shape)
    return pa.ExtensionArray.from_storage(kind, rows)
