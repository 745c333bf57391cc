"""Calls every public function with every object of a library, and writes down which call is next.

``python -m helpers.call_everything LIBRARY FILE FIRST``: calls from number FIRST on. A call that
ends the process is the last one in FILE.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import inspect
import itertools
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
from arrowdl import _core, c_data, testing

from helpers.library_objects import OBJECTS
from helpers.peer_objects import PEER_OBJECTS


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


def give_each(function: Callable[..., Any], names: Iterable[str], *args: Any) -> Callable[..., Any]:
    """Return a function that gives its argument to `function` by each of `names`."""

    def call(x: Any) -> None:
        for name in names:
            with contextlib.suppress(Exception):
                function(*args, **{name: x})

    return call


def make_loader(**options: Any) -> None:
    take_some(arrowdl.Loader(stream(), **{"batch_size": 2, "framework": "numpy"} | options))


def load_state(x: Any) -> None:
    arrowdl.Loader(stream(), 2).load_state_dict(x)


# Workers would start processes. The source has another call.
LOADER_OPTIONS = [
    name
    for name, parameter in inspect.signature(arrowdl.Loader).parameters.items()
    if parameter.kind == parameter.KEYWORD_ONLY and name != "num_workers"
]
CONVERSION_OPTIONS = list(inspect.signature(arrowdl.to_numpy).parameters)[1:]
CONFIG = ("allocator", "blocking_release", "num_threads", "release_limit", "staging_limit")
REQUIRED = {"Buckets": ("x",), "Pack": ("x", 4), "Tokens": (4,)}
SETTINGS = [cls for cls in map(vars(arrowdl).get, arrowdl.__all__) if dataclasses.is_dataclass(cls)]


def set_config(**options: Any) -> None:
    for name, value in options.items():
        before = getattr(arrowdl.config, name)
        setattr(arrowdl.config, name, value)
        setattr(arrowdl.config, name, before)


def make_settings(x: Any) -> None:
    for cls in SETTINGS:
        with contextlib.suppress(Exception):
            cls(x, *REQUIRED.get(cls.__name__, ())[1:])
        for field in dataclasses.fields(cls)[len(REQUIRED.get(cls.__name__, ())) :]:
            with contextlib.suppress(Exception):
                cls(*REQUIRED.get(cls.__name__, ()), **{field.name: x})


def check(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What is callable would be called."""
    return lambda x: None if callable(x) else function(x)


CALLS: dict[str, Callable[[Any], object]] = {
    "to_arrow_device": arrowdl.to_arrow_device,
    "to_arrow_device(copy=True)": lambda x: arrowdl.to_arrow_device(x, copy=True),
    "to_arrow_device(copy=False)": lambda x: arrowdl.to_arrow_device(x, copy=False),
    "to_arrow_device(layout='list')": lambda x: arrowdl.to_arrow_device(x, layout="list"),
    "to_arrow_device({})": lambda x: arrowdl.to_arrow_device({"x": x}),
    "to_arrow_device(mask=)": lambda x: arrowdl.to_arrow_device(np.arange(3), mask=x),
    "to_arrow_device(bool_as=)": lambda x: arrowdl.to_arrow_device(np.zeros(3, bool), bool_as=x),
    "to_arrow_device(extensions=)": lambda x: arrowdl.to_arrow_device(np.zeros(3), extensions=x),
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
    "config": give_each(set_config, CONFIG),
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
    "Loader(options)": give_each(make_loader, LOADER_OPTIONS),
    "Loader.load_state_dict": load_state,
    "Loader.plan": lambda x: arrowdl.Loader(x, 2).plan(),
    "Loader.map_dataset": lambda x: arrowdl.Loader(x, 2, framework="numpy").map_dataset()[0],
    "Loader.mix": lambda x: take_some(arrowdl.Loader.mix({"x": x}, batch_size=2)),
    "Loader.mix(sources)": lambda x: arrowdl.Loader.mix(x),
    "to_numpy(options)": give_each(arrowdl.to_numpy, CONVERSION_OPTIONS, numbers()),
    "settings": make_settings,
    "DeviceType": arrowdl.DeviceType,
    "Schema": arrowdl.Schema,
    "DeviceArray": arrowdl.DeviceArray,
    "DeviceStream": arrowdl.DeviceStream,
    "AsyncDeviceStream": arrowdl.AsyncDeviceStream,
    "register_synchronizer": lambda x: arrowdl.register_synchronizer(x, x),
    "check_dlpack_producer": testing.check_dlpack_producer,
    "check_arrow_producer": testing.check_arrow_producer,
    "check_exchange_api": testing.check_exchange_api,
    "check_dlpack_consumer": check(testing.check_dlpack_consumer),
    "check_arrow_consumer": check(testing.check_arrow_consumer),
}


def find_objects(library: str) -> tuple[str, list[str]]:
    return (OBJECTS | PEER_OBJECTS)[library]


def pairs(library: str) -> Iterator[tuple[str, str, str]]:
    needs, expressions = find_objects(library)
    for expression in expressions:
        for name in CALLS:
            yield needs, expression, name


def main(library: str, path: str, first: int) -> None:
    warnings.simplefilter("ignore")
    names: dict[str, Any] = {}
    exec(find_objects(library)[0], names)
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


def run_calls(library: str, log: Path, first: int) -> str | None:
    """How the process ended that made the calls from number `first` on; None at their end."""
    command = [sys.executable, "-m", "helpers.call_everything", library, str(log), str(first)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TQDM_DISABLE": "1"}
    said = log.with_suffix(".err")
    with said.open("wb") as err:
        process = subprocess.Popen(command, stdout=err, stderr=err, env=env, cwd=log.parent)
    made = -1
    while True:
        try:
            status = process.wait(timeout=600)
        except subprocess.TimeoutExpired:  # a slow machine makes some calls in that time
            if made == (made := log.stat().st_size if log.exists() else 0):
                process.kill()
                process.wait()
                return "it never returned"
        else:
            return None if status == 0 else f"status {status}: {said.read_text()[-300:]}"


def call_everything(library: str, folder: Path) -> list[str]:
    """The calls that ended the process or never returned; the others go on after each."""
    log = folder / "calls.txt"
    ended: list[str] = []
    first = 0
    while (how := run_calls(library, log, first)) is not None:
        number, name, expression = log.read_text().splitlines()[-1].split("\t")
        ended.append(f"{name} of {expression}: {how}")
        first = int(number) + 1
        assert len(ended) < 20, ended
    return ended


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
