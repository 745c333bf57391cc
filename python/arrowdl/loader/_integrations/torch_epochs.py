"""Which epoch the worker processes of a `DataLoader` read.

The DataLoader does not tell them: for each iteration it starts workers with a copy of the same
dataset, or makes the persistent workers begin again.
"""

from __future__ import annotations

import os

from arrowdl.loader._sources.shared_folder import SharedFolder


class Iterations:
    """The iterations so far and the epoch of each, in a folder that all workers see.

    The first worker of an iteration writes it down, with the seed that torch gives to all workers
    of the iteration, and the others find it. A worker that does not see the folder counts alone.
    """

    def __init__(self) -> None:
        self._folder: SharedFolder | None = None
        self._why_none = ""
        self._local_count = 0
        try:
            self._folder = SharedFolder("iterations")
        except OSError as error:  # only workers need the folder
            self._why_none = str(error)

    def join(
        self,
        start: str,  # where counting starts: the same for all workers
        seed: int,  # the same for all workers of an iteration, and usually for these only
        worker: int,
        epoch: int,  # the epoch of the first iteration, or, with `is_own`, of this one
        is_own: bool,  # whether the worker has loaded a state of its own
    ) -> int | None:
        """Return the epoch of the iteration that `worker` begins; None for the first iteration."""
        if self._folder is None:
            raise RuntimeError(
                "the worker processes of a DataLoader agree on the epoch through a temporary "
                f"folder, which could not be made ({self._why_none}): set TMPDIR to a folder that "
                "can be written to, or give the DataLoader num_workers=0 and the Loader workers"
            )
        try:
            return self._join(f"{self._folder.path}/{start}", seed, worker, epoch, is_own)
        except FileNotFoundError:
            count, self._local_count = self._local_count, self._local_count + 1
            return epoch + count if count else None

    def _join(self, start: str, seed: int, worker: int, epoch: int, is_own: bool) -> int | None:
        count = 0
        while True:
            name = f"{start}-{count}"
            noted_seed, noted_epoch = _note(name, f"{seed} {epoch}").split()
            if int(noted_seed) == seed and _claim(f"{name}-{worker}"):
                return int(noted_epoch) if count else None
            count += 1
            if not is_own:
                epoch = int(noted_epoch) + 1


def _note(name: str, text: str) -> str:
    """Write `text` as a link, which has it at once, or return what another worker wrote before."""
    try:
        os.symlink(text, name)
    except FileExistsError:
        return os.readlink(name)
    return text


def _claim(name: str) -> bool:
    """Whether this worker is the first to claim `name`."""
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
