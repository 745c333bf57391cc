"""Data frames out: struct arrays by the dataframe interchange protocol."""

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
_UTF8: Dtype = (Kind.STRING, 8, "u", NATIVE)  # modin reads no other; the rest looks away
_OFFSETS: dict[str, Dtype] = {"u": (Kind.INT, 32, "i", NATIVE), "U": (Kind.INT, 64, "l", NATIVE)}
_EXTENSION = b"ARROW:extension:name"
_NOTHING = ctypes.create_string_buffer(64)  # what no bytes are at: consumers refuse NULL


class Buffer:
    """Contiguous memory, immutable, which this object keeps alive."""

    def __init__(self, array: _core.DeviceArray, *, allow_copy: bool) -> None:
        self._array = array
        self._allow_copy = allow_copy
        self._host: _core.DeviceArray | None = None

    @property
    def bufsize(self) -> int:
        """Bytes."""
        return self._array.nbytes

    @property
    def ptr(self) -> int:
        """Address for the host to read, good for as long as this buffer lives; never 0.

        Of a copy, made once, where the memory is not for the host to read: consumers read it
        without a look at the device. Raises BufferError instead under ``allow_copy=False``.
        """
        if not self.bufsize:
            return ctypes.addressof(_NOTHING)
        if _core.is_host_readable(self._array.device):
            return _core.address_of(self._array)
        if not self._allow_copy:
            raise BufferError(
                f"the buffer is on {name_device(self._array.device)}, where the host cannot read: "
                "take its __dlpack__, or ask for the frame with allow_copy=True to get a copy on "
                "the host"
            )
        if self._host is None:
            self._host = self._array.to("cpu")
        return _core.address_of(self._host)

    def __dlpack__(self, **options: Any) -> Any:
        """DLPack of the memory where it lies; takes all of the protocol's keywords."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[DeviceType, int]:
        """Where the memory lies, whatever `ptr` is."""
        type, id = self._array.__dlpack_device__()
        return DeviceType(type), id

    def __deepcopy__(self, memo: object) -> Buffer:
        """The same: pandas keeps buffers in a frame's attrs, which it copies with every column."""
        return self

    def __repr__(self) -> str:
        return f"<arrowdl buffer of {self.bufsize} bytes on {name_device(self._array.device)}>"


class Column:
    """One column, in one chunk or more of the same type."""

    def __init__(
        self, name: str, arrays: Sequence[_core.DeviceArray], *, allow_copy: bool = True
    ) -> None:
        self._name = name
        self._arrays = list(arrays)
        self._allow_copy = allow_copy
        self._schema = self._arrays[0].schema
        self._dtype = self._find_dtype()
        if self._schema.format == "vu":
            self._require_copy("its string views have to be gathered")
            self._arrays = [_core.plain_strings(array) for array in self._arrays]

    def _require_copy(self, reason: str) -> None:
        if not self._allow_copy:
            raise BufferError(
                f'column "{self._name}": {reason}, and allow_copy=False forbids that: take it by '
                "the Arrow protocol"
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
            f'column "{self._name}" is of {self._arrays[0].type}, which the interchange protocol '
            "does not have (it has int, uint, float, bool, string, datetime and categorical): "
            "select other columns, or take it by the Arrow protocol"
        )

    def _whole(self) -> _core.DeviceArray:
        """The column as one array."""
        if len(self._arrays) > 1:
            self._require_copy(f"its {len(self._arrays)} chunks have to be gathered")
            self._arrays = [_core.concatenate(self._arrays)]
        return self._arrays[0]

    def _share(self, i: int, dtype: Dtype) -> tuple[Buffer, Dtype] | None:
        array = _core.share_buffer(self._whole(), i, allow_copy=self._allow_copy)
        return None if array is None else (Buffer(array, allow_copy=self._allow_copy), dtype)

    def size(self) -> int:
        """Rows."""
        return sum(map(len, self._arrays))

    @property
    def offset(self) -> int:
        """Rows of the buffers that come before the column's first."""
        whole = self._whole()
        return _core.offset_of(whole) if len(whole) else 0  # of buffers without elements

    @property
    def dtype(self) -> Dtype:
        """Kind, bits, Arrow's format string, byte order."""
        return self._dtype

    @property
    def describe_categorical(self) -> dict[str, Any]:
        """``is_ordered``, ``is_dictionary`` and the column ``categories``; TypeError for others."""
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
        """A bit mask, 0 where a row is null, or none where no row is."""
        if all(array.validity is None for array in self._arrays):
            return Null.NON_NULLABLE, None
        return Null.USE_BITMASK, 0

    @property
    def null_count(self) -> int | None:
        """Nulls; None where they are not counted and the host can't."""
        try:
            return sum(array.null_count for array in self._arrays)
        except BufferError:
            return None

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the Arrow field, an extension type's name among it."""
        return _decode(self._schema)

    def num_chunks(self) -> int:
        """How many pieces the column is in."""
        return len(self._arrays)

    def get_chunks(self, n_chunks: int | None = None) -> Iterator[Column]:
        """The pieces, each cut further where `n_chunks` is a multiple of their number."""
        for array in _divide(self._arrays, n_chunks):
            yield Column(self._name, [array], allow_copy=self._allow_copy)

    def get_buffers(self) -> dict[str, tuple[Buffer, Dtype] | None]:
        """``data``, ``validity`` and ``offsets``, each with its dtype, or None."""
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
        """What numpy.array makes the values of: how pandas reads categories, and the only way."""
        array = self._whole()
        kind = self._dtype[0]
        if kind == Kind.STRING:
            return _read_strings(array.to("cpu"))
        if kind in (Kind.DATETIME, Kind.CATEGORICAL):
            raise AttributeError(f"categories of {array.type} have no NumPy reading")
        return array

    def __repr__(self) -> str:
        return f'<arrowdl column "{self._name}" of {self._arrays[0].type}, {self.size()} rows>'


class DataFrame:
    """A frame over struct arrays, its chunks, of one schema and without nulls of their own.

    Parameters
    ----------
    chunks : sequence of DeviceArray
        One or more. They are shared, and every buffer keeps what it is of alive.
    nan_as_null : bool
        True raises BufferError: the protocol has given it up.
    allow_copy : bool
        False raises BufferError wherever handing a column out would take a copy.
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
                f"a frame is made of a struct, this is {self._chunks[0].type}: put it into one by "
                'to_arrow_device({"name": array})'
            )
        for chunk in self._chunks:
            if not allow_copy and chunk.null_count:
                raise BufferError(
                    "the struct has nulls, which have to be copied into its fields: allow it with "
                    "allow_copy=True"
                )
        self._names = [child.name for child in self._schema.children]
        self._columns = list(range(len(self._names)) if columns is None else columns)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> DataFrame:
        """The same frame under other conditions."""
        return DataFrame(
            self._chunks, nan_as_null=nan_as_null, allow_copy=allow_copy, columns=self._columns
        )

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the Arrow schema."""
        return _decode(self._schema)

    def num_columns(self) -> int:
        """Columns."""
        return len(self._columns)

    def num_rows(self) -> int:
        """Rows."""
        return sum(map(len, self._chunks))

    def num_chunks(self) -> int:
        """How many pieces the rows are in."""
        return len(self._chunks)

    def column_names(self) -> list[str]:
        """The names, in order."""
        return [self._names[i] for i in self._columns]

    def get_column(self, i: int) -> Column:
        """The column numbered `i`."""
        field = self._columns[i]
        arrays = [chunk.field(field) for chunk in self._chunks]
        return Column(self._names[field], arrays, allow_copy=self._allow_copy)

    def get_column_by_name(self, name: str) -> Column:
        """The column named `name`."""
        return self.get_column(self._find(name))

    def get_columns(self) -> Iterator[Column]:
        """All columns, in order."""
        return map(self.get_column, range(self.num_columns()))

    def select_columns(self, indices: Iterable[int]) -> DataFrame:
        """The frame of the columns numbered so, in that order."""
        columns = [self._columns[i] for i in indices]
        return DataFrame(self._chunks, allow_copy=self._allow_copy, columns=columns)

    def select_columns_by_name(self, names: Iterable[str]) -> DataFrame:
        """The frame of the columns named so, in that order."""
        return self.select_columns([self._find(name) for name in names])

    def get_chunks(self, n_chunks: int | None = None) -> Iterator[DataFrame]:
        """The pieces, each cut further where `n_chunks` is a multiple of their number."""
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
    """Keys with the library's name before them, as the protocol asks for."""
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
