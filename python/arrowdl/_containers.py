"""Converts containers of tensors to Arrow: dicts, TensorDicts, nested, masked tensors, frames."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from arrowdl import _core
from arrowdl._libraries import explain_unread, is_of


def to_arrow(tensor: Any, *, mask: Any = None, **options: Any) -> _core.DeviceArray:
    """`to_arrow_device` of a container: mappings become structs, nested tensors list arrays.

    A masked tensor becomes an array with nulls where its mask is False.
    """
    if hasattr(tensor, "get_mask"):
        rows = _find_masked_rows(tensor.get_mask())
        array = _core.to_arrow_device(tensor.get_data(), mask=rows, **options)
    elif hasattr(tensor, "is_nested"):
        array = _nested(tensor, options)
    else:
        array = _mapping(tensor, options)
    if mask is not None:
        array = _core.apply_mask(array, mask)
    return array


def _find_masked_rows(mask: Any) -> Any:
    """Return the rows of a masked tensor that are valid, as one bool each."""
    if mask.ndim < 2:
        return mask.reshape(-1)
    rows = mask.flatten(1)
    valid = rows.all(1)
    if not bool((valid | ~rows.any(1)).all()):  # rows without values are valid
        raise BufferError(
            f"the mask of shape {tuple(mask.shape)} differs within rows, and an array of tensors "
            "has a null for a whole row: fill the values, to_tensor(value), or flatten the rows"
        )
    return valid


def read_frame(frame: Any) -> _core.DeviceArray | None:
    """Return a pandas frame of NumPy numbers as a struct array of its memory.

    pandas' own export takes some hundred microseconds a column. Returns None for other objects, and
    for frames that it exports differently: with an index that is a column, names that are not
    strings, NaN (which become nulls), columns that are strided or not plain numbers.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or type(frame) is not pandas.DataFrame:
        return None
    names = frame.columns.tolist()
    if type(frame.index) is not pandas.RangeIndex or not len(frame) or not names:
        return None
    if len(set(names)) < len(names) or not all(type(name) is str for name in names):
        return None
    columns = []
    for values in _list_columns(frame):
        if not hasattr(values, "flags") or not _is_numbers(values):
            return None
        columns.append(values)
    return _core.make_struct(names, [_core.to_arrow_device(column) for column in columns])


def _list_columns(frame: Any) -> Iterator[Any]:
    """Yield each column's values: NumPy arrays, or arrays of pandas, which have no flags."""
    find = getattr(frame, "_get_column_array", None)  # without a Series, which takes 20 us to make
    if find is not None:
        yield from map(find, range(len(frame.columns)))
        return
    for _, series in frame.items():
        values = series.array
        is_numpy = type(values).__name__ == "NumpyExtensionArray"
        yield values.to_numpy() if is_numpy else values


def _is_numbers(values: Any) -> bool:
    """Whether `values`, not empty, are numbers that Arrow stores as they are, and none is NaN."""
    dtype = values.dtype
    is_plain = dtype.kind in "iu" or (dtype.kind == "f" and 4 <= dtype.itemsize <= 8)
    if not is_plain or not dtype.isnative or not values.flags.c_contiguous:
        return False
    least = values.min() if dtype.kind == "f" else 0  # NaN if there is one
    return bool(least == least)


def _mapping(tensors: Any, options: dict[str, Any]) -> _core.DeviceArray:
    if is_of(tensors, "pandas", "Series") or is_of(tensors, "datasets", "DatasetDict"):
        raise TypeError(explain_unread("to_arrow_device", tensors))
    if getattr(type(tensors), "_is_non_tensor", False):  # of tensordict
        raise TypeError(
            f"{type(tensors).__name__} has data that is not a tensor, which has no rows for Arrow: "
            "leave it out, TensorDict.exclude()"
        )
    if not len(tensors) and options.get("stream") is not None:
        raise BufferError(f"stream={options['stream']!r}: a dict without tensors has no work")
    names: list[str] = []
    arrays: list[_core.DeviceArray] = []
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the fields of a struct are named by str, got the key {name!r}")
        if not name.isprintable() and not _is_unicode(name):
            raise ValueError(f"the field name {name!r} is not valid UTF-8, which Arrow requires")
        try:
            arrays.append(_core.to_arrow_device(value, **options))
        except (BufferError, TypeError, ValueError) as error:
            # A producer's own class may need other arguments than a message: raise its base.
            kind = next(k for k in (BufferError, TypeError, ValueError) if isinstance(error, k))
            raise kind(f'field "{name}": {error}') from error
        names.append(name)
    array = _core.make_struct(names, arrays)
    size = getattr(tensors, "batch_size", ())  # of a TensorDict
    if not names and size and size[0] > 0:
        raise ValueError(
            f"{type(tensors).__name__} has {size[0]} rows and no tensors, and a struct without "
            "fields has no rows: leave it out"
        )
    return array


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _nested(tensor: Any, options: dict[str, Any]) -> _core.DeviceArray:
    import torch

    if tensor.layout != torch.jagged:
        raise BufferError(
            "a nested tensor of the strided layout has no Arrow type: make it with "
            "layout=torch.jagged"
        )
    if tensor.requires_grad:
        raise BufferError(
            "the tensor requires grad, and Arrow data has no gradient: pass tensor.detach()"
        )
    if tensor._ragged_idx != 1:
        raise BufferError(
            f"the ragged dimension of the nested tensor is {tensor._ragged_idx}, that of a list "
            f"array is 1: pass tensor.transpose(1, {tensor._ragged_idx})"
        )
    if tensor.lengths() is not None:
        if options.get("copy") is False:
            raise BufferError(
                "a nested tensor with holes cannot become a list array without a copy: allow it "
                "with copy=None"
            )
        tensor = tensor.contiguous()
    values = _core.to_arrow_device(tensor.values(), **options)
    offsets = _core.to_arrow_device(tensor.offsets(), copy=options.get("copy"))
    return _core.make_list(values, offsets)
