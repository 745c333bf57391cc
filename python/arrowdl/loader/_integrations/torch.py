"""A `Loader` as a dataset of PyTorch's `DataLoader`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import IterableDataset, default_collate, get_worker_info

from arrowdl import _core
from arrowdl.loader._integrations.torch_epochs import Iterations
from arrowdl.loader._reader import EpochReader


class TorchDataset(IterableDataset[Any]):  # type: ignore[misc]
    """Whole batches: use it with ``DataLoader(dataset, batch_size=None, num_workers=n)``.

    Each worker process reads its own part of the rank's rows, in batches that take turns. With
    workers, each iteration of the DataLoader is the next epoch, also after one that was left early;
    the loader in the training's process does not move.

    `state_dict` and `load_state_dict` are those of the loader. torchdata's `StatefulDataLoader`
    saves those of all workers. To go on with another number of workers, pass what it saved to
    `Loader.load_state_dict`.
    """

    def __init__(
        self,
        loader: EpochReader,
        *,
        # whether to return pairs of a batch and the rows of it that belong to this rank
        valid_rows: bool = False,
    ) -> None:
        self._loader = loader
        self._has_valid_rows = valid_rows
        loader._pipeline.epochs.prepare()  # for workers that are forked
        self._iterations = Iterations()
        self._start = ""  # in a worker: where the training was when it started
        self._has_own_state = False

    def __iter__(self) -> Iterator[Any]:
        _check_caller(sys._getframe(1).f_locals.get("self"))
        loader = self._loader
        worker = get_worker_info()
        if worker is None:
            return self._add_valid_rows(loader._read_share())
        _core.set_num_threads(1)  # as torch does for its own threads
        self._note_start()
        seed = worker.seed - worker.id
        epoch = self._iterations.join(
            self._start, seed, worker.id, loader._cursor.find_next().epoch, self._has_own_state
        )
        may_go_on, self._has_own_state = self._has_own_state, False
        if epoch is not None and not may_go_on:
            loader.set_epoch(epoch)
        # A state from before the workers says nothing about turns: divide the rest again.
        batches = loader._read_share(worker.id, worker.num_workers, may_go_on=may_go_on)
        return self._add_valid_rows(batches)

    def _add_valid_rows(self, batches: Iterator[Any]) -> Iterator[Any]:
        if not self._has_valid_rows:
            return batches
        return map(self._pair, batches)  # which keeps no batch

    def _pair(self, batch: Any) -> tuple[Any, int]:
        return batch, self._loader.valid_rows

    def _note_start(self) -> None:
        if not self._start:
            self._start = self._loader._cursor.position.token

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """As `Loader.set_epoch`; persistent workers count the epochs by themselves."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """As `Loader.state_dict`."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As `Loader.load_state_dict`; in a worker, the state of this worker."""
        if get_worker_info() is not None:
            self._note_start()
            self._has_own_state = True
        self._loader.load_state_dict(state)


def _check_caller(caller: Any) -> None:
    """Raise ValueError if a `DataLoader` would collate whole batches into batches of batches."""
    # A dataset is not told the DataLoader's ``batch_size``; the object that iterates it knows.
    if not getattr(caller, "auto_collation", False):
        return
    if getattr(caller, "collate_fn", None) is default_collate:
        raise ValueError(
            "a Loader's dataset returns whole batches, and this DataLoader would collate them once "
            "more: give it batch_size=None, DataLoader(loader.torch_dataset(), batch_size=None)"
        )
