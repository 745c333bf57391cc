"""Calls every public function with every object of a library, and writes down which call is next.

``python -m helpers.call_everything LIBRARY FILE FIRST``: calls from number FIRST on. A call that
ends the process is the last one in FILE.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
from arrowdl import _core, c_data

from helpers.library_objects import OBJECTS


def numbers() -> arrowdl.DeviceArray:
    return arrowdl.to_arrow_device(np.arange(6).reshape(3, 2))


def stream() -> arrowdl.DeviceStream:
    return arrowdl.from_arrow_stream([arrowdl.to_arrow_device({"x": np.arange(3)})])


def take_some(iterable: Any) -> list[Any]:
    return list(itertools.islice(iterable, 3))


def read_stream(x: Any) -> None:
    opened = arrowdl.from_arrow_stream(x)
    repr(opened)
    take_some(opened)


def load(x: Any) -> None:
    take_some(arrowdl.Loader(x, batch_size=2, framework="numpy"))


def export(function: Callable[[Any, int], None], x: Any) -> None:
    """The struct is zeroed, and lost with what it owns where the call succeeds."""
    target = ctypes.create_string_buffer(256)
    function(x, ctypes.addressof(target) + 8)
    _KEPT.append(target)


_KEPT: list[Any] = []

CALLS: dict[str, Callable[[Any], object]] = {
    "to_arrow_device": arrowdl.to_arrow_device,
    "to_arrow_device(copy=True)": lambda x: arrowdl.to_arrow_device(x, copy=True),
    "to_arrow_device(copy=False)": lambda x: arrowdl.to_arrow_device(x, copy=False),
    "to_arrow_device(layout='list')": lambda x: arrowdl.to_arrow_device(x, layout="list"),
    "to_arrow_device({})": lambda x: arrowdl.to_arrow_device({"x": x}),
    "to_arrow_device(mask=)": lambda x: arrowdl.to_arrow_device(np.arange(3), mask=x),
    "to_arrow_device(stream=)": lambda x: arrowdl.to_arrow_device(np.arange(3), stream=x),
    "from_arrow": arrowdl.from_arrow,
    "from_arrow_stream": read_stream,
    "from_arrow_stream([])": lambda x: read_stream([x]),
    "to_numpy": arrowdl.to_numpy,
    "to_numpy(nulls='mask')": lambda x: arrowdl.to_numpy(x, nulls="mask"),
    "to_numpy(ragged='padded')": lambda x: arrowdl.to_numpy(x, nulls="fill", ragged="padded"),
    "to_numpy(nulls=)": lambda x: arrowdl.to_numpy(numbers(), nulls=x),
    "to_torch": arrowdl.to_torch,
    "to_torch(device=)": lambda x: arrowdl.to_torch(numbers(), device=x),
    "to_jax": arrowdl.to_jax,
    "flatten_cu_seqlens": arrowdl.flatten_cu_seqlens,
    "Device": arrowdl.Device,
    "config(allocator=)": lambda x: arrowdl.config(allocator=x),
    "export_schema": lambda x: export(c_data.export_schema, x),
    "export_array": lambda x: export(c_data.export_array, x),
    "export_device_array": lambda x: export(c_data.export_device_array, x),
    "export_stream": lambda x: export(c_data.export_stream, x),
    "export_device_stream": lambda x: export(c_data.export_device_stream, x),
    "array[]": lambda x: numbers()[x],
    "array.field": lambda x: arrowdl.to_arrow_device({"x": np.arange(3)}).field(x),
    "array.to": lambda x: numbers().to(x),
    "array ==": lambda x: numbers() == x,
    "array.record_stream": lambda x: numbers().record_stream(x),
    "array.__dlpack__(stream=)": lambda x: numbers().__dlpack__(stream=x),
    "array.__dlpack__(dl_device=)": lambda x: numbers().__dlpack__(dl_device=x),
    "array.__dlpack__(max_version=)": lambda x: numbers().__dlpack__(max_version=x),
    "array.__arrow_c_array__": lambda x: numbers().__arrow_c_array__(x),
    "array.__arrow_c_device_array__": lambda x: numbers().__arrow_c_device_array__(x),
    "array.__array__": lambda x: numbers().__array__(x),
    "stream.__arrow_c_stream__": lambda x: stream().__arrow_c_stream__(x),
    "stream.select": lambda x: take_some(stream().select(x)),
    "stream.rebatch": lambda x: take_some(stream().rebatch(x)),
    "stream.shuffle": lambda x: take_some(stream().shuffle(x, seed=x)),
    "stream.to": lambda x: take_some(stream().to(x)),
    "stream.map": lambda x: take_some(stream().map(x)),
    "read_row_numbers": lambda x: _core.read_row_numbers(x, 3),
    "Loader": load,
    "Loader(columns=)": lambda x: take_some(
        arrowdl.Loader(stream(), batch_size=2, framework="numpy", columns=x)
    ),
    "Pack": arrowdl.Pack,
}


def pairs(library: str) -> Iterator[tuple[str, str, str]]:
    needs, expressions = OBJECTS[library]
    for expression in expressions:
        for name in CALLS:
            yield needs, expression, name


def main(library: str, path: str, first: int) -> None:
    warnings.simplefilter("ignore")
    names: dict[str, Any] = {}
    exec(OBJECTS[library][0], names)
    with Path(path).open("a", buffering=1) as log:
        for number, (_, expression, name) in enumerate(pairs(library)):
            if number < first:
                continue
            log.write(f"{number}\t{name}\t{expression}\n")
            try:
                made = eval(expression, names)
            except Exception as error:  # a version of the library that makes none
                print(f"{expression}: {error!r}", file=sys.stderr)
                continue
            try:
                CALLS[name](made)
            except BaseException as error:
                del error


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
