"""`Files`: reads whole files by their paths."""

from __future__ import annotations

from arrowdl.loader._settings.storage import Storage


class Files:
    """Reads the files of images."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        with open(path, "rb") as file:
            return file.read()
