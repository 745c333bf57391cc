"""What a model returned for a batch, as Arrow columns of as many rows."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NoReturn

from arrowdl import _core

_EXPECTED = (
    "return a tensor, a dict of tensors by column name, a tuple of them with names=[...], or Arrow "
    "columns"
)
# NumPy's kinds of dtypes that DLPack does not have: objects, strings and times.
_KINDS_OF_ARROW = frozenset("OSUMm")


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """How results become columns."""

    names: str | list[str]  # of one tensor, or of those of a tuple
    copy: bool  # copy the tensors: the model may write to their memory again
    tensors: dict[str, Any]  # options of `to_arrow_device`
    # of lists of Python values, by column: those that are known. The first list adds its own
    types: dict[str, Any]


def read_results(output: Any, rows: int, options: ResultOptions) -> dict[str, _core.DeviceArray]:
    """Return the columns that a model made for a batch."""
    columns = {}
    for name, value in _name_values(output, rows, options.names).items():
        if not isinstance(name, str):
            raise TypeError(f"the model returned the key {name!r}: columns are named by str")
        try:
            column = _read_column(name, value, rows, options)
        except (BufferError, TypeError, ValueError) as error:
            error.add_note(f'in the column "{name}" that the model returned')
            raise
        if len(column) != rows:
            raise ValueError(
                f'the model returned {len(column)} rows in "{name}" for a batch of {rows} rows: '
                "return one for each row of the batch, in the first dimension"
            )
        columns[name] = column
    if not columns:
        raise TypeError(f"the model returned no column: {_EXPECTED}")
    return columns


def _name_values(output: Any, rows: int, names: str | list[str]) -> Mapping[Any, Any]:
    if isinstance(names, str) and _find_library(type(output)):  # type: ignore[arg-type]
        return {names: output}
    if isinstance(output, Mapping) or (hasattr(output, "keys") and hasattr(output, "items")):
        return dict(output.items())
    if hasattr(output, "_asdict"):  # a named tuple
        return dict(output._asdict())
    if _is_arrow(output):
        column = _core.from_arrow(output)
        if column.schema.format == "+s":
            return {name: column.field(i) for i, name in enumerate(column.field_names)}
    if not isinstance(output, tuple) or (isinstance(names, str) and _is_ragged(output, rows)):
        output = (output,)
    if isinstance(names, str):
        names = [names]
    if len(output) != len(names):
        raise ValueError(
            f"the model returned {len(output)} tensors, and names={names!r} has {len(names)}: "
            "give a name to each, or return a dict of tensors by column name"
        )
    return dict(zip(names, output, strict=True))


@lru_cache(maxsize=64)
def _find_library(kind: type) -> str:
    """Return "torch", "numpy" or "jax" if objects of a type are tensors of it for sure, else ""."""
    # Most results need no other check. With the caches that a model leaves, each check takes tens
    # of microseconds.
    if issubclass(kind, getattr(sys.modules.get("torch"), "Tensor", ())):
        return "torch"
    if kind.__name__ == "ndarray" and kind.__module__ == "numpy":
        return "numpy"
    is_jax = kind.__module__.startswith("jax") and hasattr(kind, "__dlpack__")
    return "jax" if is_jax else ""


def _is_arrow(value: Any) -> bool:
    # The tensors of torch and NumPy do not have Arrow's protocol.
    return any(hasattr(value, f"__arrow_c_{kind}__") for kind in ("array", "stream"))


def _is_ragged(value: tuple[Any, ...], rows: int) -> bool:
    """Whether a tuple is (values, offsets), with the ends of each row in one tensor of values."""
    return len(value) == 2 and tuple(getattr(value[1], "shape", ())) == (rows + 1,)


def _read_column(name: str, value: Any, rows: int, options: ResultOptions) -> _core.DeviceArray:
    library = _find_library(type(value))  # type: ignore[arg-type]
    if library == "torch":
        return _read_torch(value, options)
    if not library:
        if _is_arrow(value):
            column = _core.from_arrow(value)
            if not options.tensors["extensions"]:
                column = _core.to_arrow_device(column, extensions=False)
            return _copy(column, options)
        if isinstance(value, list):
            return _read_list(name, value, options)
        if isinstance(value, tuple):
            if not _is_ragged(value, rows):
                _refuse(name, value)
            values, offsets = (_read_tensor(part, options) for part in value)
            return _core.make_list(values, offsets)
        if value is None or isinstance(value, (str, bytes, int, float)):
            _refuse(name, value)
    if getattr(getattr(value, "dtype", None), "kind", "") in _KINDS_OF_ARROW:
        return _make_array(name, value, options)
    return _read_tensor(value, options)


def _refuse(name: str, value: Any) -> NoReturn:
    raise TypeError(f'the model returned {type(value).__name__} for "{name}": {_EXPECTED}')


def _read_tensor(value: Any, options: ResultOptions) -> _core.DeviceArray:
    library = _find_library(type(value))  # type: ignore[arg-type]
    if library == "torch":
        return _read_torch(value, options)
    if getattr(value, "shape", None) == ():
        _refuse_scalar()
    if library == "jax":  # JAX's arrays are immutable
        return _convert(value, options)
    tensor = _convert(value, options, copy=options.copy or None)
    return tensor if library == "numpy" else _settle(tensor, options)


def _read_torch(value: Any, options: ResultOptions) -> _core.DeviceArray:
    value = value.detach()  # no_grad has no effect on parameters
    if value.dim() == 0:
        _refuse_scalar()
    if not options.copy:
        return _convert(value, options)
    if value.is_cpu:
        return _convert(value, options, copy=True)
    if value.is_nested:
        return _settle(_convert(value, options, copy=True), options)
    # On torch's stream, whose later work comes after the copy.
    contiguous = sys.modules["torch"].contiguous_format
    return _convert(value.clone(memory_format=contiguous), options)


def _convert(value: Any, options: ResultOptions, copy: bool | None = None) -> _core.DeviceArray:
    return _core.to_arrow_device(value, copy=copy, **options.tensors)


def _copy(column: _core.DeviceArray, options: ResultOptions) -> _core.DeviceArray:
    return _settle(deepcopy(column), options) if options.copy else column


def _settle(column: _core.DeviceArray, options: ResultOptions) -> _core.DeviceArray:
    """Wait for a copy on a device: the next call of the model may write to the original."""
    # The copy runs on a stream of arrowdl, and the library's stream does not wait for it.
    if options.copy and not _core.is_host_readable(column.device):
        column[:1].to("cpu")
    return column


def _refuse_scalar() -> NoReturn:
    raise ValueError(
        "it is a tensor without dimensions, and a column has a value for each row: expand() it to "
        "the rows of the batch"
    )


def _read_list(name: str, values: Sequence[Any], options: ResultOptions) -> _core.DeviceArray:
    """Return a list with a value for each row: tensors of any length, or Python values."""
    if not values or not all(hasattr(value, "__dlpack__") for value in values):
        return _make_array(name, values, options)
    shapes = {len(value.shape) for value in values}
    if len(shapes) > 1:
        raise ValueError(f"its tensors have {sorted(shapes)} dimensions: give all as many")
    # A tensor without dimensions becomes an array of one row.
    parts = [
        _convert(value.detach() if hasattr(value, "detach") else value, options).to("cpu")
        for value in values
    ]
    items = _core.concatenate(parts) if len(parts) > 1 else deepcopy(parts[0])
    if shapes == {0}:
        return items
    offsets = array("q", accumulate(map(len, parts), initial=0))
    return _core.make_list(items, _core.to_arrow_device(offsets))


def _make_array(name: str, values: Any, options: ResultOptions) -> _core.DeviceArray:
    import pyarrow as pa

    array = pa.array(values, options.types.get(name))
    if not pa.types.is_null(array.type):
        options.types.setdefault(name, array.type)
    return _core.from_arrow(array)
