"""The cases of `check_dlpack_consumer` that are about the values that it reads."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from arrowdl.testing._dlpack_consumer import (
    DTYPES,
    Consumer,
    RawProducer,
    expected,
    make_for,
    refuses_plain,
    vector_for,
)
from arrowdl.testing._raw_tensor import Memory
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._values import same_values


def _compare(
    consumer: Consumer,
    to: Recorder,
    rule: str,
    producer: RawProducer,
    values: list[Any],
    shape: tuple[int, ...] | None,
    *,
    must: bool,
) -> None:
    """The result holds `values`; if not `must`, the tensor may be refused instead."""
    result = consumer.attempt(producer)
    if isinstance(result, Exception):
        if must and rule != "from-dlpack-reads" and refuses_plain(consumer, result):
            to.skip(f"the type is refused: {quote(result)}", rule=rule)
            return
        to.expect(
            not must,
            f"raised {quote(result)}",
            rule=rule,
            advice="import it: other producers export such tensors",
        )
        return
    seen = consumer.read(result)
    to.expect(same_values(seen, values), f"reads {seen!r:.60}, not {values!r:.60}", rule=rule)
    result_shape = _find_shape(result)
    if shape is not None and result_shape is not None:
        to.expect(
            result_shape == shape,
            f"the shape is {result_shape}, not {shape}",
            rule=rule,
            advice="keep the shape",
            severity="error" if shape else "warning",
        )


def _find_shape(result: Any) -> tuple[Any, ...] | None:
    """Return the shape of a result; None if it has none, or something else of that name."""
    try:
        shape = result.shape
        shape = shape() if callable(shape) else shape  # a method, as onnxruntime has it
        return None if isinstance(shape, str) else tuple(shape)
    except Exception:
        return None


def _dtypes(consumer: Consumer, to: Recorder) -> None:
    for dtype in DTYPES:
        with to.trying(dtype):
            common = dtype in ("int32", "float32", "uint8")
            rule = "from-dlpack-reads" if common else "from-dlpack-dtype"
            producer = make_for(consumer, dtype, (2, 3))
            _compare(consumer, to, rule, producer, expected(dtype, 6), (2, 3), must=common)


def _odd_dtypes(consumer: Consumer, to: Recorder) -> None:
    """Types that few libraries have, whose bytes may not be read as another type."""
    odd = {
        "an opaque handle": (3, 64),
        "float32 with 2 lanes": (2, 32, 2),
        "int of 4 bits": (0, 4),
        "an unknown code": (77, 32),
        "a bool of 1 bit": (6, 1),
    }
    for name, dtype in odd.items():
        with to.trying(name):
            producer = vector_for(consumer, Memory(bytes(range(64))), 2, dtype)
            result = consumer.attempt(producer)
            seen = None if isinstance(result, Exception) else _read_if_plain(consumer, result)
            # A library that has the type may read it; it then has no plain numbers to show.
            to.expect(seen is None, f"is read as {seen!r:.60}")


def _read_if_plain(consumer: Consumer, result: Any) -> list[Any] | None:
    """The values if they are two plain numbers."""
    try:
        values = consumer.read(result)
    except Exception:  # a type that has no values in Python
        return None
    plain = isinstance(values, list) and len(values) == 2
    plain = plain and all(isinstance(value, int | float) for value in values)
    return values if plain else None


class Layout(NamedTuple):
    """A float32 tensor whose memory holds 1, 2, 3..., and what a consumer should read."""

    name: str
    shape: tuple[int, ...]
    values: list[int]
    fields: Mapping[str, Any] = MappingProxyType({})  # of `make_for`
    held: int | None = None  # how many numbers the memory has, if not one for each element


_STRIDES = [
    Layout("columns first", (2, 3), [1, 3, 5, 2, 4, 6], {"strides": (1, 2)}),
    Layout("gaps", (3,), [1, 3, 5], {"strides": (2,)}, 6),
    Layout("gaps between rows", (2, 2), [1, 2, 4, 5], {"strides": (3, 1)}, 6),
    Layout("broadcast", (2, 3), [1, 2, 3, 1, 2, 3], {"strides": (0, 1)}, 3),
    Layout("extent 1 with an odd stride", (1, 3), [1, 2, 3], {"strides": (77, 1)}),
]
_NULL_STRIDES = [Layout("NULL strides", (2, 3), [1, 2, 3, 4, 5, 6], {"strides": None})]
_BYTE_OFFSET = [Layout("byte_offset", (2,), [3, 4], {"byte_offset": 8}, 4)]
_EMPTIES = [Layout(f"shape {shape}", shape, []) for shape in ((0,), (0, 3), (3, 0))]
_ALIGNMENT = [
    Layout(f"an address with {shift} bytes too many", (5,), [1, 2, 3, 4, 5], {"shift": shift})
    for shift in (4, 1)
]


def _read_layouts(layouts: list[Layout], must: bool, consumer: Consumer, to: Recorder) -> None:
    for name, shape, values, fields, held in layouts:
        with to.trying(name):
            fields = {"values": None if held is None else range(1, held + 1), **fields}
            if fields.get("strides", ()) is None and not consumer.legacy:
                fields["version"] = (1, 1)
            producer = make_for(consumer, "float32", shape, **fields)
            _compare(consumer, to, to.rule, producer, values, shape, must=must)


def _zero_dim(consumer: Consumer, to: Recorder) -> None:
    for name in ("shape (), empty arrays", "shape (), NULL"):
        with to.trying(name):
            producer = make_for(consumer, "float32", ())
            if name.endswith("NULL"):
                producer.raw.tensor.shape = type(producer.raw.tensor.shape)()
                producer.raw.tensor.strides = type(producer.raw.tensor.strides)()
            _compare(consumer, to, "from-dlpack-zero-dim", producer, [1], (), must=False)


def _case_of(name: str, rule: str, layouts: list[Layout], *, must: bool = False) -> Case:
    return Case(name, rule, functools.partial(_read_layouts, layouts, must))


CASES = (
    Case("types", "from-dlpack-reads", _dtypes),
    Case("other types", "from-dlpack-dtype", _odd_dtypes),
    _case_of("strides", "from-dlpack-strides", _STRIDES),
    _case_of("NULL strides", "from-dlpack-null-strides", _NULL_STRIDES, must=True),
    _case_of("byte_offset", "from-dlpack-byte-offset", _BYTE_OFFSET),
    _case_of("no elements", "from-dlpack-empty", _EMPTIES, must=True),
    Case("no dimensions", "from-dlpack-zero-dim", _zero_dim),
    _case_of("alignment", "from-dlpack-alignment", _ALIGNMENT),
)
