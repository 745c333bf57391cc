"""Which epoch the worker processes of a `DataLoader` read.

Nobody tells them: for each iteration the DataLoader starts them with a copy of the same dataset, or
has those of the last iteration begin again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class Iterations:
    """What workers agree on, by way of a folder: the iterations so far, and the epoch of each.

    The first worker of an iteration notes it, under the seed that torch gives to all of them, and
    the others find it. In a process that does not see the folder each counts for itself.
    """

    def __init__(self) -> None:
        self._folder = self._why_none = ""
        self._own_count = 0
        try:
            self._folder = tempfile.mkdtemp(prefix="arrowdl-iterations-")
        except OSError as error:  # which matters to workers only
            self._why_none = str(error)
        else:
            weakref.finalize(self, _remove, self._folder, os.getpid())

    def join(self, start: str, seed: int, worker: int, epoch: int, is_own: bool) -> int | None:
        """Take part in the iteration that `worker` begins.

        Parameters
        ----------
        start : str
            What the iterations are counted from, the same for all workers.
        seed : int
            The same for all workers of an iteration, and as a rule for these only.
        worker : int
        epoch : int
            Of the first iteration, or with `is_own` of this one.

        Returns
        -------
        int or None
            The epoch that the iteration reads; None for the first one.

        Raises
        ------
        RuntimeError
            There is no folder: each iteration would read the same epoch.
        """
        if not self._folder:
            raise RuntimeError(
                "the worker processes of a DataLoader agree on the epoch by way of a temporary "
                f"folder, and none could be made ({self._why_none}): set TMPDIR to a folder that "
                "can be written to, or use num_workers=0 and the num_workers= of the Loader"
            )
        try:
            return self._join(start, seed, worker, epoch, is_own)
        except FileNotFoundError:
            count, self._own_count = self._own_count, self._own_count + 1
            return epoch + count if count else None

    def _join(self, start: str, seed: int, worker: int, epoch: int, is_own: bool) -> int | None:
        count = 0
        while True:
            name = os.path.join(self._folder, f"{start}-{count}")
            noted_seed, noted_epoch = _note(name, f"{seed} {epoch}").split()
            if int(noted_seed) == seed and _claim(f"{name}-{worker}"):
                return int(noted_epoch) if count else None
            count += 1
            if not is_own:
                epoch = int(noted_epoch) + 1


def _note(name: str, text: str) -> str:
    """`text`, or what somebody else has noted there before. A link is there with its text."""
    try:
        os.symlink(text, name)
    except FileExistsError:
        return os.readlink(name)
    return text


def _claim(name: str) -> bool:
    """Whether nobody has before."""
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in one that was forked
        shutil.rmtree(folder, ignore_errors=True)
