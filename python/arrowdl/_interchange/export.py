"""Exports struct arrays by the dataframe interchange protocol."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from arrowdl import _core
from arrowdl._interchange.protocol import (
    NATIVE,
    NUMBERS,
    DeviceType,
    Dtype,
    Kind,
    Null,
    find_time_bits,
    name_device,
)

_BITS: Dtype = (Kind.BOOL, 1, "b", NATIVE)
_UTF8: Dtype = (Kind.STRING, 8, "u", NATIVE)  # modin accepts no other; the others ignore it
_OFFSETS: dict[str, Dtype] = {"u": (Kind.INT, 32, "i", NATIVE), "U": (Kind.INT, 64, "l", NATIVE)}
_EXTENSION = b"ARROW:extension:name"
_EMPTY = ctypes.create_string_buffer(64)  # address of empty buffers: consumers refuse NULL


class Buffer:
    """Contiguous, immutable memory, which this object keeps alive."""

    def __init__(self, array: _core.DeviceArray, *, allow_copy: bool) -> None:
        self._array = array
        self._allow_copy = allow_copy
        self._host: _core.DeviceArray | None = None

    @property
    def bufsize(self) -> int:
        """Size in bytes."""
        return self._array.nbytes

    @property
    def ptr(self) -> int:
        """Address that the host can read, valid as long as this buffer lives; never 0.

        Consumers read it without checking the device. So if the host cannot read the memory, this
        is the address of a host copy, made once.

        Raises
        ------
        BufferError
            The host cannot read the memory, and ``allow_copy=False``.
        """
        if not self.bufsize:
            return ctypes.addressof(_EMPTY)
        if _core.is_host_readable(self._array.device):
            return _core.address_of(self._array)
        if not self._allow_copy:
            raise BufferError(
                f"the buffer is on {name_device(self._array.device)}, which the host cannot read: "
                "use its __dlpack__, or request the frame with allow_copy=True to get a host copy"
            )
        if self._host is None:
            self._host = self._array.to("cpu")
        return _core.address_of(self._host)

    def __dlpack__(self, **options: Any) -> Any:
        """Export the memory on its device, with all keywords of DLPack."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[DeviceType, int]:
        """Return the device of the memory, also if `ptr` is a host copy."""
        type, id = self._array.__dlpack_device__()
        return DeviceType(type), id

    def __deepcopy__(self, memo: object) -> Buffer:
        """Return itself: pandas keeps buffers in a frame's attrs and copies them with columns."""
        return self

    def __repr__(self) -> str:
        return f"<arrowdl buffer of {self.bufsize} bytes on {name_device(self._array.device)}>"


class Column:
    """A column of one or more chunks of the same type."""

    def __init__(
        self, name: str, arrays: Sequence[_core.DeviceArray], *, allow_copy: bool = True
    ) -> None:
        self._name = name
        self._arrays = list(arrays)
        self._allow_copy = allow_copy
        self._schema = self._arrays[0].schema
        self._dtype = self._find_dtype()
        if self._schema.format == "vu":
            self._require_copy("its string views are not contiguous")
            self._arrays = [_core.plain_strings(array) for array in self._arrays]

    def _require_copy(self, reason: str) -> None:
        if not self._allow_copy:
            raise BufferError(
                f'column "{self._name}": {reason}, and allow_copy=False forbids the copy: use the '
                "Arrow protocol"
            )

    def _find_dtype(self) -> Dtype:
        format = self._schema.format
        extension = self._schema.metadata.get(_EXTENSION, b"")
        if extension == b"arrow.bool8":
            return Kind.BOOL, 8, "b", NATIVE
        if format in NUMBERS and not extension.startswith(b"arrowdl."):
            kind, bits = NUMBERS[format]
            if self._schema.dictionary is not None:
                kind = Kind.CATEGORICAL
            return kind, bits, format, NATIVE
        if format == "b":
            return _BITS
        if format in ("u", "U", "vu"):
            return Kind.STRING, 8, "U" if format == "vu" else format, NATIVE
        if (bits_of_time := find_time_bits(format)) is not None:
            return Kind.DATETIME, bits_of_time, format, NATIVE
        raise BufferError(
            f'column "{self._name}" is {self._arrays[0].type}, and the interchange protocol has '
            "only int, uint, float, bool, string, datetime and categorical: select other columns, "
            "or use the Arrow protocol"
        )

    def _whole(self) -> _core.DeviceArray:
        """Return the column as one array."""
        if len(self._arrays) > 1:
            self._require_copy(f"its {len(self._arrays)} chunks are not contiguous")
            self._arrays = [_core.concatenate(self._arrays)]
        return self._arrays[0]

    def _share(self, i: int, dtype: Dtype) -> tuple[Buffer, Dtype] | None:
        array = _core.share_buffer(self._whole(), i, allow_copy=self._allow_copy)
        return None if array is None else (Buffer(array, allow_copy=self._allow_copy), dtype)

    def size(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self._arrays))

    @property
    def offset(self) -> int:
        """Rows of the buffers before the column's first row."""
        whole = self._whole()
        return _core.offset_of(whole) if len(whole) else 0  # empty buffers have no offset

    @property
    def dtype(self) -> Dtype:
        """Kind, bits per element, Arrow format string, byte order."""
        return self._dtype

    @property
    def describe_categorical(self) -> dict[str, Any]:
        """``is_ordered``, ``is_dictionary`` and the column ``categories``.

        Raises TypeError if the column is not categorical.
        """
        if self._schema.dictionary is None:
            raise TypeError(f'column "{self._name}" of {self._arrays[0].type} is not categorical')
        values = self._whole().dictionary
        return {
            "is_ordered": self._schema.ordered,
            "is_dictionary": True,
            "categories": Column(f"{self._name}.categories", [values], allow_copy=self._allow_copy),
        }

    @property
    def describe_null(self) -> tuple[Null, int | None]:
        """A bit mask where 0 is null, or no nulls."""
        if all(array.validity is None for array in self._arrays):
            return Null.NON_NULLABLE, None
        return Null.USE_BITMASK, 0

    @property
    def null_count(self) -> int | None:
        """Number of nulls; None if it is unknown and the host cannot count them."""
        try:
            return sum(array.null_count for array in self._arrays)
        except BufferError:
            return None

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the Arrow field, with the name of an extension type."""
        return _decode(self._schema)

    def num_chunks(self) -> int:
        """Return the number of chunks."""
        return len(self._arrays)

    def get_chunks(self, n_chunks: int | None = None) -> Iterator[Column]:
        """Yield the chunks, each divided further if `n_chunks` is a multiple of their number."""
        for array in _divide(self._arrays, n_chunks):
            yield Column(self._name, [array], allow_copy=self._allow_copy)

    def get_buffers(self) -> dict[str, tuple[Buffer, Dtype] | None]:
        """Return ``data``, ``validity`` and ``offsets``: each None or a buffer with its dtype."""
        kind, bits, format, _ = self._dtype
        if kind == Kind.STRING:
            format = self._whole().schema.format
            data, offsets = self._share(2, _UTF8), self._share(1, _OFFSETS[format])
        else:
            integer: Dtype = (Kind.INT, bits, "i" if bits == 32 else "l", NATIVE)
            codes: Dtype = (*NUMBERS.get(format, (kind, bits)), format, NATIVE)
            data = self._share(1, integer if kind == Kind.DATETIME else codes)
            offsets = None
        return {"data": data, "validity": self._share(0, _BITS), "offsets": offsets}

    @property
    def _col(self) -> Any:
        """Values for ``numpy.array``: the only way that pandas reads categories."""
        array = self._whole()
        kind = self._dtype[0]
        if kind == Kind.STRING:
            return _read_strings(array.to("cpu"))
        if kind in (Kind.DATETIME, Kind.CATEGORICAL):
            raise AttributeError(f"NumPy cannot read categories of {array.type}")
        return array

    def __repr__(self) -> str:
        return f'<arrowdl column "{self._name}" of {self._arrays[0].type}, {self.size()} rows>'


class DataFrame:
    """A frame of one or more struct arrays with the same schema, its chunks.

    Parameters
    ----------
    chunks : sequence of DeviceArray
        One or more. The buffers share their memory and keep it alive.
    nan_as_null : bool
        Only False: the protocol deprecates True.
    allow_copy : bool
        False raises BufferError where exporting a column needs a copy.
    columns : sequence of int, optional
        Indices of the columns; all by default.

    Raises
    ------
    BufferError
        ``nan_as_null=True``, or the structs have nulls and a copy is not allowed.
    TypeError
        A chunk is not a struct.
    """

    def __init__(
        self,
        chunks: Sequence[_core.DeviceArray],
        *,
        nan_as_null: bool = False,
        allow_copy: bool = True,
        columns: Sequence[int] | None = None,
    ) -> None:
        if nan_as_null:
            raise BufferError(
                "nan_as_null=True is not supported (the protocol deprecates it): nulls are in the "
                "validity buffers"
            )
        self._chunks = list(chunks)
        self._allow_copy = allow_copy
        self._schema = self._chunks[0].schema
        if self._schema.format != "+s":
            raise TypeError(
                f"a frame needs a struct array, this is {self._chunks[0].type}: make one with "
                'to_arrow_device({"name": array})'
            )
        for chunk in self._chunks:
            if not allow_copy and chunk.null_count:
                raise BufferError(
                    "the struct has nulls, which need a copy of its fields' validity: allow it "
                    "with allow_copy=True"
                )
        self._names = [child.name for child in self._schema.children]
        self._columns = list(range(len(self._names)) if columns is None else columns)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> DataFrame:
        """Return the frame with other options."""
        return DataFrame(
            self._chunks, nan_as_null=nan_as_null, allow_copy=allow_copy, columns=self._columns
        )

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the Arrow schema."""
        return _decode(self._schema)

    def num_columns(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def num_rows(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self._chunks))

    def num_chunks(self) -> int:
        """Return the number of chunks."""
        return len(self._chunks)

    def column_names(self) -> list[str]:
        """Return the column names, in order."""
        return [self._names[i] for i in self._columns]

    def get_column(self, i: int) -> Column:
        """Return the column of index `i`."""
        field = self._columns[i]
        arrays = [chunk.field(field) for chunk in self._chunks]
        return Column(self._names[field], arrays, allow_copy=self._allow_copy)

    def get_column_by_name(self, name: str) -> Column:
        """Return the column of a name.

        Raises
        ------
        ValueError
            No column, or more than one, has this name.
        """
        return self.get_column(self._find(name))

    def get_columns(self) -> Iterator[Column]:
        """Yield all columns, in order."""
        return map(self.get_column, range(self.num_columns()))

    def select_columns(self, indices: Iterable[int]) -> DataFrame:
        """Return the frame of the columns of these indices, in this order."""
        columns = [self._columns[i] for i in indices]
        return DataFrame(self._chunks, allow_copy=self._allow_copy, columns=columns)

    def select_columns_by_name(self, names: Iterable[str]) -> DataFrame:
        """Return the frame of the columns of these names, in this order."""
        return self.select_columns([self._find(name) for name in names])

    def get_chunks(self, n_chunks: int | None = None) -> Iterator[DataFrame]:
        """Yield the chunks, each divided further if `n_chunks` is a multiple of their number."""
        for chunk in _divide(self._chunks, n_chunks):
            yield DataFrame([chunk], allow_copy=self._allow_copy, columns=self._columns)

    def _find(self, name: str) -> int:
        names = self.column_names()
        if names.count(name) != 1:
            found = "several columns are" if name in names else "no column is"
            raise ValueError(f'{found} named "{name}": the names are {names}')
        return names.index(name)

    def __repr__(self) -> str:
        return f"<arrowdl frame of {self.num_rows()} rows, columns {self.column_names()}>"


def _divide(
    chunks: Sequence[_core.DeviceArray], n_chunks: int | None
) -> Iterator[_core.DeviceArray]:
    n = len(chunks) if n_chunks is None else n_chunks
    if n < 1 or n % len(chunks):
        raise ValueError(f"n_chunks={n_chunks} is not a multiple of the {len(chunks)} chunks")
    parts = n // len(chunks)
    for chunk in chunks:
        step = -(-len(chunk) // parts)
        for i in range(parts):
            yield chunk[i * step : (i + 1) * step]


def _decode(schema: _core.Schema) -> dict[str, str]:
    """Return metadata as str, with the library's name before each key, as the protocol asks."""
    return {
        f"arrowdl.{key.decode(errors='backslashreplace')}": value.decode(errors="backslashreplace")
        for key, value in schema.metadata.items()
    }


def _read_strings(array: _core.DeviceArray) -> list[str | None]:
    parts = [_core.share_buffer(array, i) for i in (1, 2)]
    (ends, data) = (_read_bytes(part) for part in parts if part is not None)
    offsets = memoryview(ends).cast("i" if array.schema.format == "u" else "q")
    first = _core.offset_of(array)
    valid = [True] * len(array)
    if (bits := _core.share_buffer(array, 0)) is not None:
        mask = _read_bytes(bits)
        valid = [bool(mask[i >> 3] >> (i & 7) & 1) for i in range(first, first + len(array))]
    return [
        data[offsets[first + i] : offsets[first + i + 1]].decode() if valid[i] else None
        for i in range(len(array))
    ]


def _read_bytes(array: _core.DeviceArray) -> bytes:
    return ctypes.string_at(_core.address_of(array), array.nbytes) if array.nbytes else b""
