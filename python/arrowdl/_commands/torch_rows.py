"""`ScanDataset`: rows of files for a torch DataLoader, as a user would write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class ScanDataset(IterableDataset[Any]):  # type: ignore[misc]
    """Batches of the rows of a dataset; each worker scans files of its own."""

    def __init__(self, dataset: ds.Dataset, columns: list[str] | None, batch_size: int) -> None:
        self._dataset = dataset
        self._columns = columns
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for fragment in list(self._dataset.get_fragments())[first::step]:
            options = {"columns": self._columns, "batch_size": self._batch_size}
            for batch in fragment.to_batches(self._dataset.schema, **options):
                columns = zip(batch.schema.names, batch.columns, strict=True)
                yield {name: _to_tensor(column) for name, column in columns}


def becomes_tensor(kind: pa.DataType) -> bool:
    """Whether a column of a type becomes a tensor: numbers, bools and lists of one length."""
    import pyarrow as pa

    types = pa.types
    if types.is_fixed_size_list(kind):
        return becomes_tensor(kind.value_type)
    return any(is_kind(kind) for is_kind in (types.is_floating, types.is_integer, types.is_boolean))


def _to_tensor(column: pa.Array) -> Any:
    import pyarrow as pa

    if not becomes_tensor(column.type):
        return column
    if pa.types.is_fixed_size_list(column.type):
        items = _to_tensor(column.flatten())
        return items.reshape(len(column), column.type.list_size, *items.shape[1:])
    values = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return torch.from_numpy(values.to_numpy(zero_copy_only=False).copy())
