"""Frames of the dataframe interchange protocol: libraries' own with their Arrow protocols hidden,
and made by hand."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from helpers.dlpack import CPU, MadeTensor

INT, UINT, FLOAT, BOOL, STRING, DATETIME, CATEGORICAL = 0, 1, 2, 20, 21, 22, 23
NON_NULLABLE, USE_NAN, USE_SENTINEL, USE_BITMASK, USE_BYTEMASK = range(5)

BITS = (BOOL, 1, "b", "=")
BYTES = (BOOL, 8, "b", "=")

_KINDS = {"i": INT, "u": UINT, "f": FLOAT, "b": BOOL, "M": DATETIME}
_FORMATS = dict(zip("bhilBHILefd?", "csilCSILefgb", strict=True))


class OnlyDataFrame:
    """`frame` with ``__dataframe__`` and nothing else."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # pandas 3's
            return self._frame.__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)


class MadeBuffer:
    """The memory of a numpy array, said to be on `device`. `by` is what works of it."""

    def __init__(
        self, data: np.ndarray, device: tuple[int, int | None] = (CPU, None), by: str = "dlpack"
    ) -> None:
        self.data = data
        self.device = device
        self.by = by
        self.reads = 0

    @property
    def bufsize(self) -> int:
        return self.data.nbytes

    @property
    def ptr(self) -> int:
        self.reads += 1
        return self.data.ctypes.data

    def __dlpack__(self, **_: Any) -> Any:
        if self.by != "dlpack":
            raise NotImplementedError("__dlpack__")
        return MadeTensor(self.data, device=(self.device[0], self.device[1] or 0)).capsule()

    def __dlpack_device__(self) -> tuple[int, int | None]:
        return self.device


def dtype_of(data: np.ndarray) -> tuple[int, int, str, str]:
    return _KINDS[data.dtype.kind], data.itemsize * 8, _FORMATS[data.dtype.char], "="


class MadeColumn:
    """A column. Every part can be set to what a producer might say."""

    def __init__(
        self,
        data: np.ndarray,
        *,
        dtype: tuple[int, int, str, str] | None = None,
        size: int | None = None,
        offset: int = 0,
        null: tuple[int, Any] = (NON_NULLABLE, None),
        null_count: int | None = None,
        validity: np.ndarray | None = None,
        offsets: np.ndarray | None = None,
        categorical: Any = None,
        device: tuple[int, int | None] = (CPU, None),
        by: str = "dlpack",
    ) -> None:
        self._size = len(data) - offset if size is None else size
        self.offset = offset
        self.dtype = dtype_of(data) if dtype is None else dtype
        self.describe_null = null
        self.null_count = null_count
        self.categorical = categorical
        self.metadata: dict[str, Any] = {}
        made = lambda array: MadeBuffer(array, device, by)  # noqa: E731
        bits = BITS if null[0] == USE_BITMASK else BYTES
        self.buffers: dict[str, Any] = {
            "data": (made(data), dtype_of(data)),
            "validity": None if validity is None else (made(validity), bits),
            "offsets": None if offsets is None else (made(offsets), dtype_of(offsets)),
        }

    @property
    def describe_categorical(self) -> Any:
        if self.categorical is None:
            raise TypeError("not categorical")
        return self.categorical

    def size(self) -> int:
        return self._size

    def num_chunks(self) -> int:
        return 1

    def get_buffers(self) -> dict[str, Any]:
        return self.buffers


class MadeFrame:
    """A frame of columns, in the chunks given."""

    def __init__(
        self, *chunks: dict[str, MadeColumn], metadata: dict[str, Any] | None = None
    ) -> None:
        self.chunks: Sequence[dict[str, MadeColumn]] = chunks
        self.metadata = metadata or {}
        self.allowed_copy: bool | None = None

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> MadeFrame:
        self.allowed_copy = allow_copy
        return self

    def column_names(self) -> list[str]:
        return list(self.chunks[0])

    def num_rows(self) -> int:
        return sum(column.size() for chunk in self.chunks for column in list(chunk.values())[:1])

    def get_column(self, i: int) -> MadeColumn:
        (chunk,) = self.chunks
        return list(chunk.values())[i]

    def get_chunks(self, n_chunks: int | None = None) -> Iterator[MadeFrame]:
        for chunk in self.chunks:
            yield MadeFrame(chunk)
