"""`__cuda_array_interface__`, taken and given: malformed ones here, the others on a fake driver.

`__sycl_usm_array_interface__` has its runtime among the peers (tests/peers/test_oneapi.py).
"""

from __future__ import annotations

from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.arrow import MadeArray, MadeDeviceArray, MadeSchema
from helpers.fake_cuda import HasInterface
from helpers.processes import run_python

CUDA = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3}


class HasSycl:
    def __init__(self, entries: Any) -> None:
        self.__sycl_usm_array_interface__ = entries


def without(key: str) -> dict[str, Any]:
    return {name: entry for name, entry in CUDA.items() if name != key}


MALFORMED = [
    (without("shape"), "has no 'shape'"),
    (without("typestr"), "has no 'typestr'"),
    (without("data"), "has no 'data'"),
    (without("version"), "has no 'version'"),
    ({**CUDA, "shape": 3}, "'shape' is 3, expected a tuple"),
    ({**CUDA, "shape": "33"}, "'shape' is '33', expected a tuple"),
    ({**CUDA, "shape": (3.0,)}, "'shape' has 3.0 in it, expected an integer"),
    ({**CUDA, "shape": (2**64,)}, "does not fit int64"),
    ({**CUDA, "shape": (-3,)}, "negative extent -3"),
    ({**CUDA, "shape": (2**40, 2**40)}, "overflow"),
    ({**CUDA, "strides": (4, 4)}, "'strides' has 2 entries, 'shape' 1"),
    ({**CUDA, "strides": 4}, "'strides' is 4"),
    ({**CUDA, "shape": (2**40, 2), "strides": (2**60, 4)}, "overflow"),
    ({**CUDA, "data": 4096}, "'data' is 4096"),
    ({**CUDA, "data": (4096,)}, r"expected \(address, read_only\)"),
    ({**CUDA, "data": ("4096", False)}, "expected an integer"),
    ({**CUDA, "data": (2**64, False)}, "does not fit int64"),
    ({**CUDA, "data": (0, False)}, "data is NULL"),
    ({**CUDA, "typestr": 4}, "'typestr' is 4, expected a str"),
    ({**CUDA, "version": "3"}, "'version' has '3' in it"),
    ([CUDA], "it is a list, expected a dict"),
]


@pytest.mark.parametrize(("entries", "says"), MALFORMED, ids=[says for _, says in MALFORMED])
def test_a_malformed_interface_is_a_value_error(entries: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        arrowdl.to_arrow_device(HasInterface(entries))
    if isinstance(entries, dict) and entries.get("version") == 3 and "strides" not in entries:
        with pytest.raises(ValueError, match=says):
            arrowdl.to_arrow_device(HasSycl({**entries, "version": 1}))


@pytest.mark.parametrize(
    "typestr", [">f4", "|V8", "<M8[s]", "<f3", "<f16", "|O8", "<U4", "|b2", "f4", "<f", "<f4x", ""]
)
def test_elements_without_a_type_are_refused_by_name(typestr: str) -> None:
    entries = {**CUDA, "typestr": typestr}
    for tensor in HasInterface(entries), HasSycl({**entries, "version": 1}):
        with pytest.raises(BufferError) as error:
            arrowdl.to_arrow_device(tensor)
        assert f"elements of '{typestr}'" in str(error.value)
        assert "supported are |b1" in str(error.value)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"mask": HasInterface(CUDA)}, "has a mask.*mask= beside it"),
        ({"version": 4}, "version 4, supported are 0 to 3"),
        ({"version": -1}, "version -1"),
        ({"strides": (6,)}, "stride of 6 bytes between elements of 4"),
        ({"shape": (1,) * 65}, "at most 64"),
    ],
)
def test_what_a_tensor_cannot_carry_is_refused(entries: dict[str, Any], says: str) -> None:
    with pytest.raises(BufferError, match=says):
        arrowdl.to_arrow_device(HasInterface({**CUDA, **entries}))


def test_an_error_of_the_property_is_the_producers() -> None:
    class Broken:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("the array was donated")

    with pytest.raises(RuntimeError, match="donated"):
        arrowdl.to_arrow_device(Broken())


def test_dlpack_comes_first() -> None:
    class Both:
        __cuda_array_interface__ = None

        def __dlpack__(self, **_: Any) -> Any:
            return np.arange(3).__dlpack__()

    assert pa.array(arrowdl.to_arrow_device(Both())).to_pylist() == [0, 1, 2]


def test_without_a_runtime_nobody_knows_the_device() -> None:
    run_python(
        f"""
        import arrowdl
        class Tensor:
            __cuda_array_interface__ = {CUDA}
        class Memory:
            __sycl_usm_array_interface__ = {{**{CUDA}, "version": 1, "syclobj": "cpu"}}
        for tensor, says in (Tensor(), "neither CUDA nor ROCm"), (Memory(), "import dpctl"):
            try:
                arrowdl.to_arrow_device(tensor)
            except BufferError as error:
                assert says in str(error), error
            else:
                raise AssertionError(says)
        """
    )


# ---------------------------------------------------------------- given


def on_device(device: int, buffers: list[Any], format: str = "i", **made: Any) -> Any:
    array = MadeDeviceArray(MadeArray(3, buffers, **made), (device, 0))
    return arrowdl.from_arrow((MadeSchema(format).capsule(), array.capsule()))


@pytest.mark.parametrize("device", ["cuda", "cuda_managed"])
def test_what_a_device_array_gives(device: str) -> None:
    values = np.arange(3, dtype="int32")
    array = on_device(getattr(arrowdl.DeviceType, device), [None, values])
    assert array[1:].__cuda_array_interface__ == {
        "shape": (2,),
        "typestr": "<i4",
        "data": (values.ctypes.data + 4, True),
        "strides": None,
        "version": 3,
        "stream": None,
    }
    assert array[:0].__cuda_array_interface__["data"] == (0, True)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (lambda: arrowdl.to_arrow_device(np.arange(3)), "on cpu:0 has no"),
        (lambda: on_device(14, [None, np.arange(3, dtype="i4")]), "on oneapi:0 has no"),
        (lambda: on_device(3, [None, np.arange(3, dtype="i4")]), "on cuda_host:0 has no"),
        (
            lambda: on_device(2, [np.array([5], "u1"), np.arange(3, dtype="i4")], null_count=1),
            "null",
        ),
        (lambda: on_device(2, [None, np.array([5], "u1")], "b"), "unpacked"),
        (lambda: on_device(2, [None, np.arange(4, dtype="i4"), None], "u"), "tensor"),
    ],
    ids=["cpu", "oneapi", "pinned", "nulls", "bits", "strings"],
)
def test_what_has_no_interface_says_so_to_hasattr(array: Any, says: str) -> None:
    made = array()
    assert not hasattr(made, "__cuda_array_interface__")
    assert not hasattr(made, "__sycl_usm_array_interface__")
    with pytest.raises(AttributeError, match=says):
        made.__cuda_array_interface__  # noqa: B018


# ---------------------------------------------------------------- on the fake driver


def test_a_named_stream_becomes_an_event(on_fake_cuda: Any) -> None:
    on_fake_cuda("""
memory, stream = cuda.allocate(16), cuda.make_stream()
with cuda.gate(stream):
    array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=stream))
    assert array.device == arrowdl.Device("cuda", 0)
    assert not array.is_ready()
array.synchronize()
assert arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=None)).sync_event is None
assert arrowdl.to_arrow_device(cuda.tensor(memory, (4,))).sync_event is None

for default in (1, 2):  # the legacy and the per-thread default stream
    with cuda.gate(default):
        array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=default))
        assert not array.is_ready()
    array.synchronize()

with cuda.gate(1):  # before version 3 there was no stream to name
    for version in (0, 1, 2):
        assert not arrowdl.to_arrow_device(cuda.tensor(memory, (4,), version=version)).is_ready()

given = cuda.make_stream()
with cuda.gate(given):  # the caller knows better
    array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=stream), stream=given)
    assert not array.is_ready()

for number in (0, -1):
    refused(ValueError, f"'stream' is {number}",
            lambda: arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=number)))
""")


def test_the_address_says_the_device(on_fake_cuda: Any) -> None:
    on_fake_cuda("""
pinned = cuda.make("cuMemHostAlloc", ctypes.c_size_t(16), 1)
managed = cuda.make("cuMemAllocManaged", ctypes.c_size_t(16), 1, device=1)
second = cuda.allocate(16, device=1)
for memory, device in (pinned, "cuda_host:0"), (managed, "cuda_managed:1"), (second, "cuda:1"):
    array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=1))
    assert f"{array.device.name}:{array.device.id}" == device
own = ctypes.create_string_buffer(16)
refused(BufferError, "CUDA knows no device memory",
        lambda: arrowdl.to_arrow_device(cuda.tensor(ctypes.addressof(own), (4,))))

array = arrowdl.to_arrow_device(cuda.tensor(0, (0, 3), stream=cuda.make_stream()))
assert (array.shape, array.device, array.sync_event) == ((0, 3), arrowdl.Device("cuda", 0), None)
""")


def test_rocm_speaks_it_too_and_both_at_once_are_refused(on_fake_cuda: Any) -> None:
    on_fake_cuda("""
both = cuda.tensor(cuda.allocate(16), (4,))
hip = ctypes.CDLL("libamdhip64.so.6")
refused(BufferError, "both CUDA and ROCm are loaded", lambda: arrowdl.to_arrow_device(both))
""")
    run_python("""
        import ctypes
        import arrowdl
        from helpers.fake_cuda import HasInterface

        hip = ctypes.CDLL("libamdhip64.so.6")
        memory = ctypes.c_void_p()
        assert hip.hipInit(0) == hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(16)) == 0
        entries = {"shape": (4,), "typestr": "<f4", "data": (memory.value, False), "version": 2}
        for stream in ({}, {"stream": 1, "version": 3}):
            array = arrowdl.to_arrow_device(HasInterface({**entries, **stream}))
            assert array.device == arrowdl.Device("rocm", 0)
            assert array.sync_event is not None
            assert not hasattr(array, "__cuda_array_interface__")
    """)


def test_strides_are_in_bytes_both_ways(on_fake_cuda: Any) -> None:
    on_fake_cuda("""
memory = cuda.allocate(4 * 24)
array = arrowdl.to_arrow_device(cuda.tensor(memory, (4, 3, 2), strides=(24, 4, 12)))
entries = array[1:].__cuda_array_interface__
assert entries["shape"] == (3, 3, 2)
assert entries["strides"] == (24, 4, 12)
assert entries["data"] == (memory + 24, True)
again = arrowdl.to_arrow_device(HasInterface(entries))
assert again.__cuda_array_interface__ == entries
ctypes.memmove(memory, (ctypes.c_int * 24)(*range(24)), 96)
gaps = cuda.tensor(memory, (4, 3), strides=(24, 8))
refused(BufferError, "not dense", lambda: arrowdl.to_arrow_device(gaps, copy=False))
dense = arrowdl.to_arrow_device(gaps)
dense.synchronize()
entries = dense.__cuda_array_interface__
assert entries["strides"] in (None, (12, 4)) and entries["data"][0] != memory
rows = list((ctypes.c_int * 12).from_address(entries["data"][0]))
assert rows == [6 * row + 2 * column for row in range(4) for column in range(3)]
""")


def test_a_consumer_comes_after_the_stream_that_it_is_given(on_fake_cuda: Any) -> None:
    on_fake_cuda("""
memory, stream = cuda.allocate(16), cuda.make_stream()
with cuda.gate(stream):
    array = arrowdl.to_arrow_device(cuda.tensor(memory, (4,), stream=stream))
    ours = array.__cuda_array_interface__["stream"]
    assert ours not in (None, 0, 1, 2, stream)
    assert array.__cuda_array_interface__["stream"] == ours
    assert not cuda.is_idle(ours)  # the host has not waited, the stream does
array.synchronize()
with cuda.context(0):
    cuda.call("cuStreamSynchronize", ctypes.c_void_p(ours))
assert array.__cuda_array_interface__["stream"] is None
""")


def test_memory_is_kept_for_consumers_and_given_back(on_fake_cuda: Any) -> None:
    on_fake_cuda("""
memory, stream = cuda.allocate(16), cuda.make_stream()
tensor = cuda.tensor(memory, (4,), stream=stream)
gone = weakref.ref(tensor)
array = arrowdl.to_arrow_device(tensor)
del tensor
gc.collect()
assert gone() is not None
array.synchronize()
assert array.__cuda_array_interface__["stream"] is None
with cuda.gate(1):  # where consumers compute that name no stream
    del array
    gc.collect()
    assert debug.pending_releases() == 1
    assert gone() is not None
settle()
assert gone() is None
assert debug.live_objects() == 0
""")
