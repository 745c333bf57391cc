"""A `Loader` for PyTorch's `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset, get_worker_info

if TYPE_CHECKING:
    from arrowdl.loader._loader import Loader


class TorchDataset(IterableDataset[Any]):  # type: ignore[misc]
    """Whole batches: use it with ``DataLoader(dataset, batch_size=None, num_workers=n)``.

    Each worker process reads its own share of the rank's rows, in batches that take turns.
    `state_dict` and `load_state_dict` are those of the loader; torchdata's `StatefulDataLoader`
    asks each worker for its own.

    Parameters
    ----------
    loader : Loader
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        loader = self._loader
        rank, world_size = loader._find_world()
        worker = get_worker_info()
        if worker is not None:
            rank = rank * worker.num_workers + worker.id
            world_size *= worker.num_workers
        return loader._start(rank, world_size)

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """As of `Loader`; workers that persist go on by themselves."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._loader.load_state_dict(state)
