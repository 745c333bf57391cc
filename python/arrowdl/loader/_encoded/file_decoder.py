"""`FileDecoder`: reads and decodes the files of a column in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Semaphore
from typing import Any

from arrowdl import _core
from arrowdl.loader._encoded.column import list_encoded
from arrowdl.loader._encoded.threads import call_in_threads
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._skipped import RowsError, describe
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.disk_cache import open_cache
from arrowdl.loader._storage.threads import FILES_AT_ONCE
from arrowdl.loader._storage.whole_files import WholeFiles, describe_path


class FileDecoder:
    """Calls a function with the bytes of each file of a column; keeps the connections to stores."""

    returns_new_memory = is_parallel = True

    def __init__(
        self,
        name: str,  # of the value object, such as "Image"
        storage: Storage,
        threads: int | None,  # None is as many as there are processors, or more if files are far
    ) -> None:
        self._name, self._noun = name, name.lower()
        self._threads = threads
        # Two batches may be decoded at a time: the threads that a user names are for both.
        self._turns = Semaphore(threads or 2**10)
        cache = open_cache(storage.cache, storage.cache_bytes)
        access = Access(storage.filesystem, storage.options, storage.retries, cache)
        self._files = WholeFiles(access)

    def list_files(self, column: Any) -> Sequence[Any]:
        """See `list_encoded`."""
        return list_encoded(column, self._name, self._noun)

    def decode(
        self,
        files: Sequence[Any],
        function: Callable[[int, Any], Any],
        # takes rows, and what `function` has returned for each; None for a null
        join: Callable[[Sequence[int], list[Any]], _core.DeviceArray],
    ) -> _core.DeviceArray:
        """Call `function` with each row and its bytes, and return the column that `join` makes.

        Raises RowsError for rows that cannot be read or decoded.
        """
        rows = [row for row, file in enumerate(files) if file is not None]
        paths = [file for file in files if isinstance(file, str)]
        results: list[Any] = [None] * len(files)
        errors: dict[int, Exception] = {}

        def decode(i: int) -> None:
            row, file = rows[i], files[rows[i]]
            is_path = isinstance(file, str)
            try:
                with self._turns:
                    results[row] = function(row, self._files.read(file) if is_path else file)
            except MemoryError:
                raise
            except Exception as error:
                name = f"the {self._noun}" + (f" {describe_path(file)!r}" if is_path else "")
                errors[row] = ValueError(f"cannot decode {name}: {describe(error)}")

        threads = self._threads
        if threads is None:
            least = FILES_AT_ONCE if self._files.are_remote(paths) else 1
            threads = max(_core.num_threads(), least)
        call_in_threads(decode, len(rows), threads)
        good = [row for row in range(len(files)) if row not in errors]
        decoded = [results[row] for row in good]
        if errors:
            raise RowsError(errors, partial(join, good, decoded))
        return join(good, decoded)
