"""torch.xpu without dpctl, through which alone arrowdl reaches SYCL.

torch.xpu.Stream has the address of its sycl::queue (`sycl_queue`) and torch.xpu.Event no handle, so
the release of memory that a queue still reads could not be ordered without dpctl's functions.
Source: torch/csrc/xpu/Stream.cpp and Event.cpp.
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
from arrowdl.testing._dlpack_consumer import MadeProducer
from arrowdl.testing._made_tensor import MadeTensor, Memory

class XpuStream:
    sycl_queue = 4096

def make():
    return MadeTensor(Memory(bytes(range(12))), (3,), dtype="int32", device=(14, 0))

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
    return MadeProducer(tensors[-1], device=(14, 0))

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
