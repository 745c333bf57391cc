"""torch.xpu without dpctl, through which alone arrowdl reaches SYCL.

torch.xpu has the addresses of its sycl::queue (`Stream.sycl_queue`) and sycl::event
(`Event.sycl_event`), and makes a stream of a foreign queue (`get_stream_from_external`). In C it
has its current queue (`aoti_torch_get_current_xpu_stream`), but nothing for events. Those functions
are Python's: each query of an event, which the release thread makes every millisecond or more
often, would take the interpreter lock, and none could be made while the interpreter ends. The SYCL
runtime's own symbols are mangled and differ between versions. dpctl has these functions in C. And
torch's build for XPU runs on Intel's GPUs alone: only dpctl's way is tested on real queues.
Sources, of torch 2.13: torch/csrc/xpu/Stream.cpp, Event.cpp, torch/xpu/__init__.py, and
torch/csrc/inductor/aoti_torch/c/shim_xpu.h.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy.random._common as any_library
import pytest
from helpers.processes import run_python

CODE = """
import ctypes
sycl = ctypes.CDLL("libsycl.so.8")  # as torch.xpu loads it
import arrowdl
from arrowdl.testing._dlpack_consumer import RawProducer
from arrowdl.testing._raw_tensor import RawTensor, Memory

class XpuStream:
    sycl_queue = 4096

def make():
    return RawTensor(Memory(bytes(range(12))), (3,), dtype="int32", device=(14, 0))

def refused(use):
    try:
        use()
    except BufferError as error:
        assert "oneapi:0" in str(error), error
        assert "pip install dpctl" in str(error), error
        assert "copy the data to the CPU in its own library" in str(error), error
    else:
        raise AssertionError("is not refused")

tensors = []
def tensor():
    tensors.append(make())
    return RawProducer(tensors[-1], device=(14, 0))

refused(lambda: arrowdl.to_arrow_device(tensor()))
refused(lambda: arrowdl.to_arrow_device(tensor(), stream=XpuStream()))
refused(lambda: arrowdl.to_arrow_device({"x": tensor()}))
refused(lambda: arrowdl.to_arrow_device(tensor().__dlpack__()))
"""


def test_a_tensor_of_torch_xpu_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(any_library.__file__, tmp_path / "libsycl.so.8")
    known = os.environ.get("LD_LIBRARY_PATH")
    monkeypatch.setenv(
        "LD_LIBRARY_PATH", os.pathsep.join([str(tmp_path), *([known] if known else [])])
    )
    run_python(CODE)
