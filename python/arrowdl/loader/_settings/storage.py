"""`Storage`: how a `Loader` reaches and reads files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from arrowdl.loader._checks import require_bool, require_choice, require_int
from arrowdl.loader._settings.retries import Retries
from arrowdl.loader._settings.value_object import value_object
from arrowdl.loader._types import Decoder, PlanLike


@value_object
@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """How files are reached and read, for ``Loader(storage=Storage(filesystem=filesystem))``.

    Parameters
    ----------
    filesystem : pyarrow.fs.FileSystem or fsspec.AbstractFileSystem, optional
        The file system with the paths of the source. By default the local one, and for URLs the one
        that they name: ``s3://``, ``gs://``, ``abfss://``, ``az://`` and ``hdfs://`` of pyarrow,
        all others (``https://``, ``hf://``, ...) of fsspec.
    options : mapping of str to object, optional
        Options of the file system that a URL names: keywords of ``pyarrow.fs.S3FileSystem``,
        ``GcsFileSystem``, ``AzureFileSystem`` and ``HadoopFileSystem``, or of fsspec's. For URLs of
        several schemes, such a mapping for each scheme. Their values are not in the ``repr``.
    retries : Retries, optional
        How often and how long requests to a store are tried again.
    cache : str or PathLike, optional
        Folder on a local disk that keeps what was read over a network, for later epochs and
        Loaders of the same files. Processes share it, and may end at any time. What has changed in
        the store, or is damaged in the folder, is read again. If the folder cannot be written to,
        the logger "arrowdl.loader" warns once, and it is not used. Not on Windows.
    cache_bytes : int, optional
        The most bytes in `cache`, for all its users together: what was not used for longest is
        removed first. Give both or neither.
    plan : FilePlan, path or "share", optional
        What `Loader.plan` returned for the same paths, table or dataset, or the file that it was
        saved to. Then no files are listed, and no footer is read before its rows are. "share": with
        a process group of ``torch.distributed``, rank 0 lists the files and reads the footers for
        all ranks.
    memory_map : bool
        Map local Arrow IPC files into memory, so that a page is read when it is first used. If
        another process truncates a mapped file, this process ends with SIGBUS. False reads the
        files instead, in the order of whole files.
    decoder : {'pyarrow', 'polars'}
        The library that decodes Parquet files. polars is faster at integers, bools and floats of 32
        and 64 bits, most of all at bools and nulls. It decodes those in whole row groups of at
        least a quarter of a million values and at most 128 MiB, of local files that are read
        without a `filter`. pyarrow decodes everything else, and everything in forked processes.
        Rows, their order, errors and states are the same; only the values under nulls, which are
        undefined, may differ.

    Raises
    ------
    TypeError, ValueError
        A value is not supported, only one of `cache` and `cache_bytes` is given, or `options` are
        given beside a `filesystem`.
    NotImplementedError
        `cache` on Windows.
    """

    filesystem: Any = None
    options: Mapping[str, Any] | None = field(default=None, repr=False)
    retries: Retries | None = None
    cache: str | os.PathLike[str] | None = None
    cache_bytes: int | None = None
    plan: PlanLike | None = None
    memory_map: bool = True
    decoder: Decoder = "pyarrow"

    def __post_init__(self) -> None:
        require_choice("Storage.decoder", self.decoder, get_args(Decoder))
        maps = require_bool("Storage.memory_map", self.memory_map)
        object.__setattr__(self, "memory_map", maps)
        if self.filesystem is not None and not is_file_system(self.filesystem):
            raise TypeError(
                f"Storage.filesystem={self.filesystem!r}: give a file system of pyarrow.fs or "
                "fsspec, such as pyarrow.fs.S3FileSystem(...). Or leave it out, and give the "
                "source as URLs, such as s3://bucket/folder, with Storage.options"
            )
        if self.options is not None and not isinstance(self.options, Mapping):
            raise TypeError(
                f"Storage.options is a {type(self.options).__name__}: give a mapping of the file "
                "system's options by name"
            )
        if self.options is not None and self.filesystem is not None:
            raise ValueError(
                "Storage.options are for the file system that a URL names: pass these to "
                "the object of Storage.filesystem when you make it"
            )
        if self.retries is not None and not isinstance(self.retries, Retries):
            raise TypeError(f"Storage.retries={self.retries!r}: give an arrowdl.Retries(...)")
        self._check_plan()
        self._check_cache()

    def _check_plan(self) -> None:
        """Raise TypeError unless `plan` is a plan, its file or "share"."""
        is_path = isinstance(self.plan, (str, os.PathLike))
        if self.plan is not None and not is_path and not hasattr(self.plan, "save"):
            raise TypeError(
                f"Storage.plan={self.plan!r}: give what Loader.plan() returned, the file that its "
                'save() wrote, or "share"'
            )

    def _check_cache(self) -> None:
        """Raise an error unless `cache` is a folder with a limit, or neither is given."""
        folder, nbytes = self.cache, self.cache_bytes
        if (folder is None) != (nbytes is None):
            raise ValueError(
                f"Storage.cache={folder!r}, Storage.cache_bytes={nbytes!r}: give both, a folder on "
                "a local disk and the most bytes that it may have, or neither"
            )
        if folder is None:
            return
        if not isinstance(folder, (str, os.PathLike)) or "://" in os.fsdecode(folder):
            raise TypeError(f"Storage.cache={folder!r}: give the path of a folder on a local disk")
        nbytes = require_int("Storage.cache_bytes", nbytes, 1)
        object.__setattr__(self, "cache_bytes", nbytes)
        if sys.platform == "win32":
            raise NotImplementedError(
                f"Storage.cache={folder!r}: processes share the folder by locks of Unix, which "
                "Windows does not have: leave Storage.cache out"
            )


def is_file_system(value: Any) -> bool:
    """Whether `value` is a file system of pyarrow, which is not imported, or of fsspec."""
    kind = getattr(sys.modules.get("pyarrow.fs"), "FileSystem", ())
    return isinstance(value, kind) or is_of_fsspec(value)


def is_of_fsspec(value: Any) -> bool:
    """Whether `value` is a file system of fsspec; a class of them is not."""
    names = "cat_file", "find", "info"
    return not isinstance(value, type) and all(
        callable(getattr(value, name, None)) for name in names
    )
