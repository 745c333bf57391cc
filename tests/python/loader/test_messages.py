"""Batches between processes: what comes out is what went in, whatever the batch before it was."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import jax
import ml_dtypes
import numpy as np
import pytest
import torch
from arrowdl import _core
from arrowdl.loader._batches.pack import Message, flatten
from arrowdl.loader._batches.to_device import copy_ahead
from arrowdl.loader._clock import Clock

Pair = namedtuple("Pair", ["x", "y"])


def write(tree: Any) -> Message:
    """As a worker does, into memory of this process."""
    layout, leaves = flatten(tree)
    block = _core.TensorBlock(leaves, layout.frameworks)
    memory = np.full(block.nbytes, 255, np.uint8)
    block.write(memory)
    others = pickle.loads(pickle.dumps({i: leaves[i] for i in block.left_out}))
    layout = pickle.loads(pickle.dumps(layout))
    return Message(1, 1, layout, arrowdl.to_arrow_device(memory), block.table, others)


def count_pickled(tree: Any) -> int:
    return len(write(tree).others)


def assert_same(made: Any, given: Any) -> None:
    assert type(made) is type(given)
    assert made.dtype == given.dtype
    assert made.shape == given.shape
    if isinstance(given, torch.Tensor):
        assert made.is_contiguous()
        given = given.contiguous()
        made, given = (tensor.view(-1).view(torch.uint8) for tensor in (made, given))
    assert np.array_equal(np.asarray(made), np.asarray(given))


TORCH_DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16),
    *(torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2),
]


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,), (3, 0), (0, 2), (2, 3, 4)], ids=str)
def test_tensors_of_torch(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.arange(int(np.prod(shape))).reshape(shape).to(dtype)
    message = write(tensor)
    assert not message.others
    assert_same(message.read(), tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12).reshape(3, 4).T,
        torch.arange(12)[::3],
        torch.arange(3).expand(4, 3),
        torch.arange(24).reshape(2, 3, 4)[:, 1:, ::2],
        torch.arange(8)[5:],
    ],
    ids=["transposed", "strided", "expanded", "window", "offset"],
)
def test_strides_of_torch(tensor: torch.Tensor) -> None:
    assert_same(write(tensor).read(), tensor)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6),
        np.array(2.5),
        np.arange(6)[::-1],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array([True, False]),
        np.array([1 + 2j], np.complex64),
        np.zeros((0, 4), np.float16),
    ],
)
def test_arrays_of_numpy(array: np.ndarray[Any, Any]) -> None:
    message = write(array)
    assert not message.others
    assert_same(message.read(), array)


@pytest.mark.parametrize(
    "array", [jax.numpy.arange(6, dtype="int32"), jax.numpy.ones((2, 3), "bfloat16")], ids=str
)
def test_arrays_of_jax(array: Any) -> None:
    message = write(array)
    assert not message.others
    assert_same(message.read(), array)


def test_frameworks_lie_in_one_block() -> None:
    tree = (torch.arange(3), np.arange(4.0), torch.arange(5), jax.numpy.arange(6))
    message = write(tree)
    assert not message.others
    for made, given in zip(message.read(), tree, strict=True):
        assert_same(made, given)


def test_nested_tensors() -> None:
    values, offsets = torch.arange(12).reshape(6, 2), torch.tensor([0, 2, 2, 6])
    jagged = torch.nested.nested_tensor_from_jagged(values, offsets)
    message = write({"a": jagged, "b": values})
    assert not message.others
    batch = message.read()
    assert batch["a"].layout == torch.jagged
    assert batch["a"].offsets().tolist() == offsets.tolist()
    assert torch.equal(batch["a"].values(), values)
    assert torch.equal(batch["b"], values)


@dataclasses.dataclass
class Record:
    x: torch.Tensor


OTHERS = [
    torch.ones(2, requires_grad=True),
    torch.tensor([1 + 2j]).conj(),
    torch.eye(2).to_sparse(),
    np.array(["2024-01-01"], "datetime64[D]"),
    np.array([1.5], ml_dtypes.bfloat16),
    np.array([1, 2], ">i4"),
    np.ma.masked_array([1, 2], [True, False]),
    np.array([b"a"]),
    np.float32(1.5),
    Record(torch.ones(2)),
    b"bytes",
    None,
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: type(other).__name__)
def test_what_is_no_plain_tensor_is_pickled(other: Any) -> None:
    assert count_pickled(other) == 1
    first, made, last = write([torch.ones(1), other, torch.zeros(1)]).read()
    assert (first.item(), last.item()) == (1, 0)
    assert type(made) is type(other)
    assert str(made) == str(other)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_that_are_no_lists_are_pickled() -> None:
    rows = [torch.ones(2), torch.ones(3)]
    message = write((torch.nested.nested_tensor(rows, layout=torch.strided), rows[0]))
    assert list(message.others) == [0]
    nested, dense = message.read()
    assert [row.tolist() for row in nested.unbind()] == [row.tolist() for row in rows]
    assert torch.equal(dense, rows[0])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", ["grad", "conj", "sparse", "nested"])
def test_tensors_that_would_stay_on_the_host_are_refused(name: str) -> None:
    left_out = {
        "grad": torch.ones(2, requires_grad=True),
        "conj": torch.tensor([1 + 2j]).conj(),
        "sparse": torch.eye(2).to_sparse(),
        "nested": torch.nested.nested_tensor([torch.ones(2)], layout=torch.strided),
    }
    with pytest.raises(BufferError, match="a Tensor that is more than plain memory"):
        write({"plain": torch.ones(2), name: left_out[name]}).to("cpu")
    names = np.array(["a", "b"])  # what no device holds stays
    assert write({"x": torch.ones(2), "names": names}).to("cpu").read()["names"] is not None


def test_ordered_dicts() -> None:
    message = write(OrderedDict(b=torch.ones(2), a=3))
    assert list(message.others.values()) == [3]
    batch = message.read()
    assert type(batch) is OrderedDict
    assert list(batch) == ["b", "a"]
    assert batch["b"].tolist() == [1, 1]


def test_trees() -> None:
    tree = {
        "pair": Pair(1, [torch.ones(1), (), {}]),
        7: defaultdict(list),
        None: torch.Size([2, 3]),
        "deep": ({"a": ({"b": None},)},),
    }
    made = write(tree).read()
    assert made == tree
    assert [type(value) for value in made.values()] == [type(value) for value in tree.values()]


def test_layouts_are_the_same_where_only_numbers_differ() -> None:
    def make(rows: int, dtype: Any = torch.float32) -> Any:
        return {"x": torch.ones(rows, dtype=dtype), "y": [torch.ones(rows, 2)]}

    layout = flatten(make(3))[0]
    assert flatten(make(0, torch.int8))[0] == layout
    assert flatten({"x": np.ones(3), "y": [torch.ones(3, 2)]})[0] != layout
    assert flatten({"x": torch.ones(3), "z": [torch.ones(3, 2)]})[0] != layout
    assert flatten({"x": torch.ones(3), "y": (torch.ones(3, 2),)})[0] != layout


def test_a_batch_that_was_written_is_released_at_once() -> None:
    """Not by the garbage collector: until it runs, a worker makes many batches."""
    tree = {"x": [np.ones(3)], "y": "text"}
    released = weakref.ref(tree["x"][0])
    gc.disable()
    try:
        write(tree)
        del tree
        assert released() is None
    finally:
        gc.enable()


def test_tensors_are_aligned_and_hold_the_block() -> None:
    tree = [torch.full((i,), i, dtype=torch.uint8) for i in range(1, 70)]
    message = write(tree)
    made = message.read()
    base = _core.address_of(message.block)
    del message
    assert [(tensor.data_ptr() - base) % 64 for tensor in made] == [0] * len(tree)
    for tensor, given in zip(made, tree, strict=True):
        assert torch.equal(tensor, given)


def test_a_block_needs_its_room() -> None:
    block = _core.TensorBlock([torch.ones(3)], ["torch"])
    with pytest.raises(ValueError, match="a block of 64 bytes does not fit into 63"):
        block.write(bytearray(63))
    for target in (bytes(64), np.zeros(128, np.uint8)[::2], np.zeros(64, np.uint8)[::-1]):
        with pytest.raises((BufferError, TypeError, ValueError)):
            block.write(target)
    with pytest.raises(ValueError, match="1 leaves of 0 frameworks"):
        _core.TensorBlock([torch.ones(3)], [])


def test_a_table_of_another_block_is_refused() -> None:
    message = write([torch.ones(3), torch.ones(100)])
    half = message.block[:256]
    with pytest.raises(ValueError, match="does not fit a block of 256 bytes"):
        _core.read_tensors(half, message.table, message.layout.frameworks)
    moved = np.frombuffer(message.table, np.int64).copy()
    moved[2] += 4  # the position of the first: entries are dimensions, dtype, position, shape
    with pytest.raises(ValueError, match="does not fit a block"):
        _core.read_tensors(message.block, moved.tobytes(), message.layout.frameworks)
    with pytest.raises(ValueError, match="too short"):
        _core.read_tensors(message.block, message.table[:-1], message.layout.frameworks)
    with pytest.raises(ValueError, match="no framework is named"):
        _core.read_tensors(message.block, message.table, ["torch", "tensorflow"])
    words = arrowdl.to_arrow_device(torch.ones(100))
    with pytest.raises(TypeError, match="array of bytes"):
        _core.read_tensors(words, message.table, message.layout.frameworks)


# ---- copies ahead of the training


class Source:
    """Messages of which `ready` are there; a copy is told in `log`."""

    def __init__(self, count: int, ready: int) -> None:
        self.count, self.ready = count, ready
        self.log: list[str] = []

    def read(self) -> Iterator[Any]:
        for i in range(self.count):
            self.ready -= 1
            yield Copied(self, i)

    def is_ready(self) -> bool:
        return self.ready > 0


class Copied:
    def __init__(self, source: Source, number: int) -> None:
        self.source, self.number = source, number

    def to(self, device: Any) -> int:
        self.source.log.append(f"copy {self.number} to {device}")
        return self.number


def test_copies_are_ahead() -> None:
    source = Source(6, ready=6)
    copies: Any = copy_ahead(source.read(), source.is_ready, "there", 2, Clock())
    assert next(copies) == 0
    assert source.log == ["copy 0 to there", "copy 1 to there", "copy 2 to there"]
    assert next(copies) == 1
    assert source.log[3:] == ["copy 3 to there"]
    assert list(copies) == [2, 3, 4, 5]


def test_copies_wait_for_no_message_where_a_batch_is_there() -> None:
    source = Source(4, ready=2)
    copies: Any = copy_ahead(source.read(), source.is_ready, "there", 2, Clock())
    assert [next(copies), next(copies)] == [0, 1]
    assert len(source.log) == 2
    source.ready = 1
    assert next(copies) == 2
    assert list(copies) == [3]


def test_no_copy_is_ahead_without_a_prefetch() -> None:
    source = Source(3, ready=3)
    for i, number in enumerate(copy_ahead(source.read(), source.is_ready, "there", 0, Clock())):
        assert number == i
        assert len(source.log) == i + 1


def test_what_came_before_an_error_is_given() -> None:
    source = Source(2, ready=3)

    def read() -> Iterator[Any]:
        yield from source.read()
        raise LookupError

    copies: Any = copy_ahead(read(), source.is_ready, "there", 5, Clock())
    assert [next(copies), next(copies)] == [0, 1]
    with pytest.raises(LookupError):
        next(copies)


@pytest.mark.slow
def test_batches_of_workers_lie_on_the_device(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import dataclasses, multiprocessing
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import StandInFramework, replace_framework

framework = StandInFramework(cuda)
entries = dataclasses.replace(_frameworks.load("numpy"), tensor_type=framework.tensor_type)
replace_framework("torch", entries)  # here: the worker processes have torch

table = pa.table({"id": range(50), "x": pa.array(range(50), pa.float32())})
for prefetch in (0, 2):
    loader = arrowdl.Loader(table, 5, num_workers=2, device="cuda:0", prefetch=prefetch)
    for epoch in range(2):
        batches = list(loader)
        with cuda.context(0):
            cuda.call("cuStreamSynchronize", ctypes.c_void_p(framework.stream))
        ids = [batch["id"].tolist() for batch in batches]
        assert sorted(ids) == [list(range(i, i + 5)) for i in range(0, 50, 5)], ids
        assert all(batch["x"].tolist() == batch["id"].tolist() for batch in batches)
        del batches
        settle()
del loader
gc.collect()
assert multiprocessing.active_children() == []
""")


def test_ragged_batches_are_copied_ahead(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import dataclasses, threading
import pyarrow as pa
from arrowdl import _core, _frameworks
from helpers.fake_cuda import StandInFramework, read_as_host, replace_framework

framework = StandInFramework(cuda)
numpy = _frameworks.load("numpy")
replace_framework("torch", dataclasses.replace(numpy, tensor_type=framework.tensor_type))
# The batches on the host are numpy arrays, and so are their copies, which are on the fake device.
replace_framework("numpy", dataclasses.replace(numpy, from_dlpack=read_as_host))

def read():
    for i in range(10):
        threads.append(threading.get_ident())
        yield pa.table({"id": [i], "list": pa.array([list(range(i))], pa.list_(pa.int64()))})

def expect(batches):
    with cuda.context(0):
        cuda.call("cuStreamSynchronize", ctypes.c_void_p(framework.stream))
    assert [batch["id"].tolist() for batch in batches] == [[i] for i in range(10)]
    assert [batch["list"][0].tolist() for batch in batches] == [[list(range(i))] for i in range(10)]

for prefetch in (0, 1, 3):
    threads = []
    loader = arrowdl.Loader(read, 1, ragged="padded", device="cuda:0", prefetch=prefetch)
    for epoch in range(2):
        batches = list(loader)
        expect(batches)
        del batches
        settle()
    left = iter(loader)
    next(left)
    left.close()
    until = time.monotonic() + 20
    while debug.live_objects() and time.monotonic() < until:
        settle()
        gc.collect()
    assert debug.live_objects() == 0
    own = threading.get_ident()
    assert set(threads[5:10]).isdisjoint({own}) == (prefetch > 0)
""")


def test_tensors_on_a_device_are_not_handed_over(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
from arrowdl import _core
there = cuda.tensor(cuda.allocate(12), (3,))
refused(BufferError, "the transform returned a tensor on cuda:0: leave it on the host",
        lambda: _core.TensorBlock([there], ["torch"]))
""")
