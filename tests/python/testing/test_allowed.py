"""What the standards allow is not an error, and a check reads no more than it needs."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arrowdl.testing import check_arrow_producer, check_dlpack_consumer, check_dlpack_producer
from arrowdl.testing._managed import MOST_READ, read_indices
from arrowdl.testing._values import read_result


@pytest.mark.parametrize(
    "array", [np.zeros(3, ">i4"), np.array(["a"])], ids=["big-endian", "strings"]
)
def test_an_array_that_is_refused_with_buffer_error_breaks_no_rule(array: Any) -> None:
    report = check_dlpack_producer(lambda: array.copy())
    assert report.errors == ()
    whys = {found.rule.id: found.seen for found in report.skipped}
    assert whys["dlpack-ndim"].startswith("the array cannot be exported: BufferError")
    assert {"dlpack-threads", "dlpack-device-agrees", "dlpack-copy-true"} <= set(whys)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.array([1.0, math.nan]), [1.0, math.nan]),
        (np.array([0.1], np.float32), [0.1]),
        (np.array([0.1], np.float16), (0.1,)),
        (np.ones((2, 2)), [[1, 1], [1, 1]]),
        (np.ones((2, 2)), np.ones((2, 2))),
        (np.array(3.0), np.array(3.0)),
        (np.arange(3), iter([0, 1, 2])),
    ],
)
def test_values_may_be_given_as_users_have_them(array: Any, values: Any) -> None:
    report = check_dlpack_producer(array, values=values)
    assert "dlpack-values" in report.passed


@pytest.mark.parametrize("values", [[0.2], [0.1, 0.1], [math.nan], [1e300], ["a"], [None]])
def test_other_values_are_an_error(values: list[Any]) -> None:
    report = check_dlpack_producer(np.array([0.1], np.float32), values=values)
    assert [found.rule.id for found in report.errors] == ["dlpack-values"]


class _Kind(enum.Enum):
    CPU = 1


@pytest.mark.parametrize(
    ("device", "severities"),
    [
        ((np.int64(1), np.int64(0)), []),
        ((_Kind.CPU, 0), ["warning"]),
        ((1.0, 0), ["error"]),
        ((1, None), ["error"]),
        ((1, 0, 0), ["error"]),
    ],
)
def test_the_device_is_two_integers(device: Any, severities: list[str]) -> None:
    class Array:
        def __init__(self) -> None:
            self.array = np.arange(3.0)

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return device

    report = check_dlpack_producer(Array())
    found = [found.severity for found in report.findings if found.rule.id == "dlpack-device"]
    assert found == severities


def test_a_large_view_is_read_at_its_ends() -> None:
    view = np.broadcast_to(np.float32(1), (2**20, 2**20))
    assert check_dlpack_producer(view).errors == ()
    assert len(read_indices(2**40)) == MOST_READ
    assert read_indices(2**40)[-1] == 2**40 - 1


def test_values_at_the_end_of_a_large_array_are_compared() -> None:
    values = np.arange(20_000)
    wrong = values.copy()
    wrong[-1] = 7
    assert "dlpack-values" in check_dlpack_producer(values, values=values).passed
    (found,) = check_dlpack_producer(values, values=wrong).errors
    assert "19999], not [" in found.seen


def test_a_refusal_is_an_error_of_what_has_to_be_read_alone() -> None:
    def doubles(x: Any) -> Any:
        array = np.from_dlpack(x)
        if array.dtype != np.float64:
            raise BufferError("only float64")
        return array

    report = check_dlpack_consumer(doubles)
    rules = {found.rule.id for found in report.errors}
    assert "from-dlpack-reads" in rules
    assert not rules & {
        "from-dlpack-strides",
        "from-dlpack-alignment",
        "from-dlpack-null-strides",
        "from-dlpack-empty",
        "from-dlpack-null-deleter",
        "from-dlpack-minor",
    }


def test_memory_that_is_not_aligned_may_be_refused() -> None:
    def aligned(x: Any) -> Any:
        array = np.from_dlpack(x)
        if array.ctypes.data % 16 and array.size:
            raise BufferError("not aligned to 16 bytes")
        if array.ndim and any(stride > 64 for stride in array.strides):
            raise BufferError("gaps")
        return array

    rules = {found.rule.id for found in check_dlpack_consumer(aligned).errors}
    assert not rules & {"from-dlpack-alignment", "from-dlpack-strides"}


@pytest.mark.parametrize("value", [3, 2.5, True, "text"])
def test_plain_results_are_read_as_they_are(value: Any) -> None:
    assert read_result(value) is value


@pytest.mark.parametrize(
    "schema", [pa.int8(), pa.field("a", pa.int8()), pa.schema({"a": pa.int8()})]
)
def test_an_object_with_a_schema_only_is_checked_as_one(schema: Any) -> None:
    report = check_arrow_producer(schema)
    assert report.errors == ()
    assert "arrow-format" in report.passed
    assert "arrow-methods" in {found.rule.id for found in report.skipped}


class _OneStream:
    def __init__(self) -> None:
        self.table: Any = pa.table({"x": [1]})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if self.table is None:
            raise RuntimeError("consumed")
        table, self.table = self.table, None
        return table.__arrow_c_stream__(requested_schema)


def test_a_stream_that_can_be_read_once_needs_a_function() -> None:
    report = check_arrow_producer(_OneStream())
    assert report.errors == ()
    whys = {found.seen for found in report.skipped}
    assert any("pass a function that makes a new one" in why for why in whys)
    assert "arrow-stream-next" in check_arrow_producer(_OneStream).passed


def test_a_stream_that_always_raises_is_an_error() -> None:
    spent = _OneStream()
    spent.table = None
    assert check_arrow_producer(spent).errors
