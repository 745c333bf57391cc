"""`SharedFolder`: a temporary folder of a process, which its worker processes see."""

from __future__ import annotations

import os
import shutil
import tempfile
from multiprocessing.util import Finalize


class SharedFolder:
    """A folder that is removed with this object; copies of it, and pickles, have its path alone.

    Raises OSError if no folder can be made.
    """

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._make()

    def renew(self) -> None:
        """Make a folder of this process if that of another one is gone, with the object there."""
        if not os.path.isdir(self.path):
            self._make()

    def _make(self) -> None:
        path = self.path = tempfile.mkdtemp(prefix=f"arrowdl-{self._purpose}-")
        # By this process alone; if it ends first, then, also where that skips what `atexit` calls,
        # as in the processes that multiprocessing forks.
        Finalize(self, shutil.rmtree, (path, True), exitpriority=0)
