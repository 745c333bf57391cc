"""A `Loader` for PyTorch's `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset, get_worker_info

from arrowdl import _core
from arrowdl.loader._integrations.torch_epochs import Iterations

if TYPE_CHECKING:
    from arrowdl.loader._loader import Loader


class TorchDataset(IterableDataset[Any]):  # type: ignore[misc]
    """Whole batches: use it with ``DataLoader(dataset, batch_size=None, num_workers=n)``.

    Each worker process reads its own share of the rank's rows, in batches that take turns. Each
    iteration of a DataLoader with workers is the next epoch, whether the last one was left in the
    middle or not; the loader in the process of the training stays where it is.

    `state_dict` and `load_state_dict` are those of the loader; torchdata's `StatefulDataLoader`
    asks each worker for its own. What it made of them is a state for `Loader.load_state_dict`,
    where the number of workers is another one than before.

    Parameters
    ----------
    loader : Loader
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._iterations = Iterations()
        self._start = ""  # in a worker: where the training was when it started
        self._has_own_state = False

    def __iter__(self) -> Iterator[Any]:
        loader = self._loader
        world = loader._find_world()
        worker = get_worker_info()
        if worker is None:
            return loader._iterate(loader._begin(*world))
        _core.set_num_threads(1)  # as torch does for its own
        self._note_start()
        seed = worker.seed - worker.id
        epoch = self._iterations.join(
            self._start, seed, worker.id, loader._find_next().epoch, self._has_own_state
        )
        may_go_on, self._has_own_state = self._has_own_state, False
        if epoch is not None and not may_go_on:
            loader.set_epoch(epoch)
        # A state from before the workers says nothing of whose turn it was: deal the rest anew.
        reader = loader._begin(*world, worker.id, worker.num_workers, may_go_on=may_go_on)
        return loader._iterate(reader)

    def _note_start(self) -> None:
        if not self._start:
            self._start = self._loader._position.token

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """As of `Loader`; workers that persist go on by themselves."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if get_worker_info() is not None:
            self._note_start()
            self._has_own_state = True
        self._loader.load_state_dict(state)
