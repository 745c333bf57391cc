"""A CUDA driver that cannot compile arrowdl's kernels: the framework's operations are used."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("status", [221, 222, 223])
def test_the_framework_unpacks_instead(on_fake_cuda: Callable[[str], None], status: int) -> None:
    """CUDA_ERROR_JIT_COMPILER_NOT_FOUND, _UNSUPPORTED_PTX_VERSION, _JIT_COMPILATION_DISABLED."""
    on_fake_cuda(f"""
import dataclasses
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
replace_framework("numpy", dataclasses.replace(numpy, from_dlpack=read_as_host))
cuda.library.arrowdl_fake_set_module_status({status})
flags = arrowdl.from_arrow(pa.array([True, None, False] * 20)).to("cuda:0")
numbers = arrowdl.from_arrow(pa.array([1.5, None, 2.5])).to("cuda:0")
assert arrowdl.to_numpy(flags, nulls="fill").tolist() == [True, False, False] * 20
assert arrowdl.to_numpy(numbers, nulls="fill").tolist() == [1.5, 0, 2.5]
values, valid = arrowdl.to_numpy(numbers, nulls="mask")
assert valid.tolist() == [True, False, True]
bits = arrowdl.from_arrow(pa.array([True, False])).to("cuda:0")
assert read_as_host(bits).tolist() == [True, False]  # by way of the host
assert flags[1:4].null_count == 1
settle()
""")


def test_integers_without_nulls_are_no_floats(on_fake_cuda: Callable[[str], None]) -> None:
    """A slice whose nulls have to be counted was filled with NaN: an error of the framework."""
    on_fake_cuda("""
import dataclasses
import pyarrow as pa
from arrowdl import _frameworks
from helpers.fake_cuda import read_as_host, replace_framework

numpy = _frameworks.load("numpy")
replace_framework("numpy", dataclasses.replace(numpy, from_dlpack=read_as_host))
cuda.library.arrowdl_fake_set_module_status(221)
numbers = arrowdl.from_arrow(pa.array([1, 2, None, 4])).to("cuda:0")
assert arrowdl.to_numpy(numbers[:2], nulls="nan").tolist() == [1, 2]
refused(BufferError, 'nulls="nan" needs a floating', lambda: arrowdl.to_numpy(numbers, nulls="nan"))
settle()
""")
