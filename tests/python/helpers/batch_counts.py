"""What the driver's double is asked for each batch of `Loader(device=)`: waits, allocations, pins.

On the doubles of a framework, which take memory by the calls of the real one. As a program it
prints the table: `python -m helpers.batch_counts`, in the environment that `on_fake_cuda` makes.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import arrowdl
import numpy as np
import pyarrow as pa
from arrowdl import _core, _frameworks, debug

from helpers.capsules import make_capsule
from helpers.fake_cuda import (
    FAKE_TORCH,
    FakeCuda,
    StandInFramework,
    read_as_host,
    replace_framework,
)
from helpers.options import group

ROWS, BATCH = 8192, 512


class Counts(NamedTuple):
    host_waits: int
    device_allocations: int
    pool_allocations: int
    page_locks: int
    copies: int
    launches: int
    staged_bytes: int


# The columns of a case, and the options.
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": (["i", "f", "pair"], {}),
    "bools": (["ok"], {}),
    "bools with nulls": (["maybe"], {"nulls": "mask"}),
    "filled": (["x", "y"], {"nulls": "fill"}),
    "filled by a value": (["x", "y"], {"nulls": 7}),
    "masked": (["x", "y"], {"nulls": "mask"}),
    "ragged": (["ids"], {"ragged": "offsets"}),
    "ragged with null rows": (["holes"], {"ragged": "offsets", "nulls": "mask"}),
    "padded": (["ids"], {"ragged": "padded"}),
    "padded with null rows": (["holes"], {"ragged": "padded", "nulls": "fill"}),
    "padded text": (["text"], {"ragged": "padded"}),
    "text": (["text"], {"ragged": "offsets"}),
    "lists of lists": (["nested"], {"ragged": "offsets"}),
    "struct": (["pack"], {"nulls": "fill"}),
    "stacked": (["f", "g"], {"stack": True}),
    "stacked and masked": (["x", "y"], {"stack": True, "nulls": "mask"}),
    "dictionary": (["word", "i"], {}),
    "masked dictionary": (["gap"], {"nulls": "mask"}),
    "images": (["image", "i"], {}),
    "wide": ([f"c{i}" for i in range(20)], {}),
    "wide and stacked": ([f"c{i}" for i in range(20)], {"stack": True}),
    "very wide": ([f"c{i}" for i in range(200)], {}),
}

# The most copies and launches for each batch of rows of the device: none for other cases.
ON_DEVICE: dict[str, tuple[int, int]] = {
    "bools": (0, 1),
    "bools with nulls": (0, 2),
    "filled": (0, 2),
    "filled by a value": (0, 2),
    "masked": (0, 2),
    "ragged": (1, 1),
    "ragged with null rows": (1, 2),
    "padded": (0, 3),
    "padded with null rows": (0, 3),
    "padded text": (0, 3),
    "text": (1, 1),
    "lists of lists": (2, 2),
    "struct": (0, 1),
    "masked dictionary": (0, 1),
    "stacked": (1, 1),
    "stacked and masked": (2, 8),
    "wide and stacked": (1, 1),
}

# The most waits for a batch of rows in order that crosses arrays of the device: two for each level
# whose size the host reads, of the batch and of the rest of its array, and for dictionaries, which
# only the host compares. Other cases wait for nothing.
OF_PARTS = {
    "ragged": 4,
    "ragged with null rows": 6,
    "padded": 4,
    "padded with null rows": 6,
    "padded text": 4,
    "text": 4,
    "lists of lists": 8,
    "dictionary": 4,
    "masked dictionary": 4,
}


def make_lists(numbers: np.ndarray[Any, Any], size: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.repeat(numbers, size), pa.float32()), list_size=size
    )


@functools.cache
def make_table() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "i": pa.array(numbers, pa.int32()),
            "f": pa.array(numbers / 3, pa.float32()),
            "g": pa.array(numbers / 5, pa.float32()),
            "x": pa.array([None if i % 5 == 0 else i / 2 for i in range(ROWS)], pa.float32()),
            "y": pa.array([None if i % 7 == 0 else i / 2 for i in range(ROWS)], pa.float32()),
            "ok": pa.array([i % 3 == 0 for i in range(ROWS)]),
            "wide": make_lists(numbers, 64),
            "image": make_lists(numbers, 48),
            "pair": pa.array([[i, -i] for i in range(ROWS)], pa.list_(pa.int16(), 2)),
            "ids": pa.array([[i] * (i % 4) for i in range(ROWS)]),
            "holes": pa.array([None if i % 8 == 0 else [i] * (i % 4) for i in range(ROWS)]),
            "maybe": pa.array([None if i % 5 == 0 else i % 3 == 0 for i in range(ROWS)]),
            "nested": pa.array([[[i] * (i % 3)] * (i % 4) for i in range(ROWS)]),
            "pack": pa.StructArray.from_arrays(
                [pa.array(numbers), pa.array(numbers / 2, mask=numbers % 9 == 0)], ["a", "b"]
            ),
            "gap": pa.array(
                [None if i % 6 == 0 else "ab"[: i % 4] for i in range(ROWS)]
            ).dictionary_encode(),
            "text": pa.array(["ab"[: i % 4] for i in range(ROWS)]),
            "word": pa.array(["ab"[: i % 4] for i in range(ROWS)]).dictionary_encode(),
            **{f"c{i}": pa.array(numbers * i, pa.float32()) for i in range(200)},
        }
    ).combine_chunks()


def open_loader(name: str, where: str, framework: str, **others: Any) -> arrowdl.Loader:
    """A Loader of a case, whose rows are in memory of the host or of the device, there in one array
    or in "parts" that batches cross."""
    columns, options = (["wide", "i"], {}) if name == "long" else CASES[name]
    options = {"batch_size": BATCH, "columns": columns, **options, **others}
    options["framework"] = framework
    if where == "host":
        return arrowdl.Loader(make_table(), **group(**options, device="cuda:0"))
    size = 3 * BATCH // 2 if where == "parts" else ROWS
    parts = make_table().select(columns).to_batches(size)
    there = [arrowdl.from_arrow(part).to("cuda:0") for part in parts]
    return arrowdl.Loader(there, **group(**options))


class _Array(np.ndarray[Any, Any]):
    """A tensor of the framework. `pack` knows it by the name of its module."""

    is_nested = False


class _OnStream:
    """A producer whose consumer names `stream`, as JAX does for memory of a device."""

    def __init__(self, tensor: Any, stream: int) -> None:
        self._tensor, self._stream = tensor, stream

    def __dlpack__(self, **options: Any) -> Any:
        on_host = self.__dlpack_device__()[0] == 1
        return self._tensor.__dlpack__(**{**options, "stream": None if on_host else self._stream})

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


class _Torch(StandInFramework):
    def _to_object(self, managed: int, out: int) -> int:
        super()._to_object(managed, out)
        address = ctypes.c_void_p.from_address(out)
        made = ctypes.cast(ctypes.c_void_p(address.value), ctypes.py_object).value
        viewed = made.view(_Array)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(viewed))
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(made))
        address.value = id(viewed)
        return 0


@contextmanager
def _as_current(_stream: Any) -> Iterator[None]:
    yield


def _install_torch(cuda: FakeCuda) -> None:
    """The module that arrowdl allocates by: once in Python, then by functions of its library."""
    library = ctypes.CDLL(FAKE_TORCH)
    library.fake_torch_exchange_api.restype = ctypes.c_void_p
    api = make_capsule(library.fake_torch_exchange_api(), "dlpack_exchange_api")

    def empty(nbytes: int, **_: Any) -> Any:
        memory = cuda.allocate(nbytes)
        return SimpleNamespace(data_ptr=lambda: memory)

    torch: Any = SimpleNamespace(
        uint8=None,
        empty=empty,
        device=lambda name, index: (name, index),
        version=SimpleNamespace(hip=None),
        Tensor=type("Tensor", (), {"__dlpack_c_exchange_api__": api, "__module__": "torch"}),
        distributed=SimpleNamespace(is_available=lambda: False),
        utils=SimpleNamespace(data=SimpleNamespace(get_worker_info=lambda: None)),
        cuda=SimpleNamespace(
            is_initialized=lambda: True,
            current_device=lambda: 0,
            stream=_as_current,
            ExternalStream=lambda handle, device: (handle, device),
        ),
    )
    sys.modules["torch"] = torch


class Counter:
    """Counts what the driver does for batches of a double of `framework`, "torch" or "jax"."""

    def __init__(self, cuda: FakeCuda, framework: str) -> None:
        self.cuda, self.framework = cuda, framework
        _Array.__module__ = {"torch": "torch", "jax": "jaxlib"}[framework]
        stream = cuda.make_stream()
        numpy = _frameworks.load("numpy")

        def from_dlpack(tensor: Any) -> Any:
            return read_as_host(_OnStream(tensor, stream)).view(_Array)

        made = dataclasses.replace(
            numpy, from_dlpack=from_dlpack, from_offsets=from_dlpack, from_plain=from_dlpack
        )
        if framework == "torch":
            _install_torch(cuda)
            self.torch = _Torch(cuda)  # has the functions of the exchange API
            made = dataclasses.replace(made, tensor_type=self.torch.tensor_type)
        else:
            made = dataclasses.replace(made, alignment=64, device_alignment=16)
        replace_framework(framework, made)

    def count(self) -> np.ndarray[Any, Any]:
        calls = Counts._fields[:-1]
        counts = [getattr(self.cuda.library, f"arrowdl_fake_{name}")() for name in calls]
        return np.array([*counts, _core.staged_bytes()])

    def run(self, loader: arrowdl.Loader) -> list[Counts]:
        """What each batch of an epoch takes, when the memory of the one before is free."""
        rows, before = [], self.count()
        for batch in loader:
            del batch
            while debug.pending_releases():
                time.sleep(0.0001)
            now = self.count()
            rows.append(Counts(*map(int, now - before)))
            before = now
        return rows


def main() -> None:
    """Print the most that a batch takes after the second one."""
    cuda = FakeCuda()
    counter = Counter(cuda, sys.argv[1])
    print(f"{'rows of':8}{'':9} {'':24}", *(f"{name:>18}" for name in Counts._fields))
    for where in ("host", "device"):
        for shuffle in (False, True):
            for name in CASES:
                options = {"shuffle": shuffle, "prefetch": 0}
                loader = open_loader(name, where, sys.argv[1], **options)
                most = np.array(counter.run(loader)[2:]).max(axis=0)
                order = "shuffled" if shuffle else ""
                print(f"{where:8}{order:9} {name:24}", *(f"{n:18}" for n in most))


if __name__ == "__main__":
    main()
