"""A `Loader` over shards of a Ray dataset: Ray reads and moves the blocks, arrowdl makes batches.

Ray's own ``iter_batches(batch_size)`` copies the rows of every batch. A `ShardLoader` reads the
Arrow blocks in the object store, which is read-only: batches in order are copies of the rows, or
slices of the blocks with ``writable=False``. A block returns to Ray when no batch uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from arrowdl.loader import Loader, Ranks

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ShardLoader", "get_dataset_loader"]

_TENSOR_EXTENSIONS = ("ray.data.arrow_tensor", "ray.data.arrow_tensor_v2")


class ShardLoader(Loader):
    """A `Loader` over one worker's shard of a Ray dataset.

    Parameters
    ----------
    shard : ray.data.DataIterator or ray.data.Dataset
        From ``Dataset.streaming_split(n, equal=True)`` or ``ray.train.get_dataset_shard()``. With
        `equal`, all ranks have the same number of rows and batches.
    batch_size : int, optional
        Rows of a batch on this worker.
    ranks : Ranks, optional
        Without `rank` and `world_size`: the shard already belongs to one rank.
    **options
        As in `Loader`. `shuffle` permutes the rows within each buffer; Ray chooses the order of the
        blocks.

    Raises
    ------
    TypeError
        `shard` is not a shard or dataset of Ray.
    ValueError
        `ranks` has a `rank` and a `world_size`.

    Notes
    -----
    As usual in Ray, an epoch begins when all shards of a split have requested it.
    """

    def __init__(
        self,
        shard: Any,
        batch_size: int | None = None,
        *,
        ranks: Ranks | None = None,
        **options: Any,
    ) -> None:
        if not hasattr(shard, "iter_batches"):
            raise TypeError(
                f"{type(shard).__name__} has no iter_batches: give a shard of "
                "Dataset.streaming_split() or of ray.train.get_dataset_shard(), or a Dataset"
            )
        group = Ranks() if ranks is None else ranks
        if group.rank is not None:
            raise ValueError(
                "the shard already belongs to one rank: leave Ranks.rank and Ranks.world_size out"
            )
        local = replace(group, rank=0, world_size=1)
        super().__init__(partial(_read_blocks, shard), batch_size, ranks=local, **options)

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epoch, for information: no loader can resume from it."""
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> NoReturn:
        """Not supported: Ray assigns other blocks to shards in each epoch.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            "Ray assigns the blocks of a dataset to other shards in each epoch, so rows would "
            "be lost or read twice: resume at the start of an epoch, or give a Loader the files "
            "themselves"
        )


def get_dataset_loader(batch_size: int, dataset_name: str = "train", **options: Any) -> ShardLoader:
    """Return a loader over this Ray Train worker's shard of a dataset.

    Parameters
    ----------
    batch_size : int
        Rows of a batch on this worker.
    dataset_name : str
        The key in ``datasets=`` of the trainer.
    **options
        As in `ShardLoader`.

    Returns
    -------
    ShardLoader
    """
    import ray.train

    return ShardLoader(ray.train.get_dataset_shard(dataset_name), batch_size, **options)


def _read_blocks(shard: Any) -> Iterator[pa.RecordBatch]:
    blocks = iter(shard.iter_batches(batch_size=None, batch_format="pyarrow"))
    while (table := next(blocks, None)) is not None:
        batches = _use_fixed_shapes(table).to_batches()
        del table  # so that a block is released with its last batch
        batches.reverse()
        while batches:
            yield batches.pop()


def _use_fixed_shapes(table: pa.Table) -> pa.Table:
    """Convert Ray's tensors of one shape to Arrow's fixed-shape tensors, zero-copy."""
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
