"""The cases of `check_dlpack_consumer` that are about the values that it reads."""

from __future__ import annotations

from typing import Any

from arrowdl.testing._dlpack_consumer import (
    DTYPES,
    Consumer,
    MadeProducer,
    expected,
    made_for,
    refuses_plain,
)
from arrowdl.testing._made_tensor import MadeTensor, Memory
from arrowdl.testing._report import Recorder
from arrowdl.testing._run import Case, quote
from arrowdl.testing._values import same_values


def _compare(
    consumer: Consumer,
    to: Recorder,
    rule: str,
    producer: MadeProducer,
    values: list[Any],
    shape: tuple[int, ...] | None,
    *,
    must: bool,
) -> None:
    """The result holds `values`; if not `must`, the tensor may be refused instead."""
    result = consumer.attempt(producer)
    if isinstance(result, Exception):
        if must and rule != "from-dlpack-reads" and refuses_plain(consumer, result):
            to.skip(rule, f"the type is refused: {quote(result)}")
            return
        to.expect(
            rule,
            not must,
            f"raised {quote(result)}",
            "import it: other producers export such tensors",
        )
        return
    seen = consumer.read(result)
    to.expect(
        rule,
        same_values(seen, values),
        f"reads {seen!r:.60}, not {values!r:.60}",
        "read the field, or raise BufferError",
    )
    own = _find_shape(result)
    if shape is not None and own is not None:
        to.expect(
            rule,
            own == shape,
            f"the shape is {own}, not {shape}",
            "keep the shape",
            "error" if shape else "warning",  # some libraries have no zero-dimensional arrays
        )


def _find_shape(result: Any) -> tuple[Any, ...] | None:
    """Return the shape of a result; None if it has none, or something else of that name."""
    try:
        own = result.shape
        own = own() if callable(own) else own  # a method, as onnxruntime has it
        return None if isinstance(own, str) else tuple(own)
    except Exception:
        return None


def _dtypes(consumer: Consumer, to: Recorder) -> None:
    for dtype in DTYPES:
        with to.trying(dtype):
            common = dtype in ("int32", "float32", "uint8")
            rule = "from-dlpack-reads" if common else "from-dlpack-dtype"
            producer = made_for(consumer, dtype, (2, 3))
            _compare(consumer, to, rule, producer, expected(dtype, 6), (2, 3), must=common)


def _odd_dtypes(consumer: Consumer, to: Recorder) -> None:
    """Types that few libraries have. Their bytes may not be read as another type."""
    odd = {
        "an opaque handle": (3, 64),
        "float32 with 2 lanes": (2, 32, 2),
        "int of 4 bits": (0, 4),
        "an unknown code": (77, 32),
        "a bool of 1 bit": (6, 1),
    }
    for name, dtype in odd.items():
        with to.trying(name):
            tensor = MadeTensor(
                Memory(bytes(range(64))),
                (2,),
                dtype=dtype,
                strides=(1,),
                versioned=not consumer.legacy,
            )
            result = consumer.attempt(MadeProducer(tensor))
            seen = None if isinstance(result, Exception) else _read_if_plain(consumer, result)
            # A library that has the type may read it; it then has no plain numbers to show.
            to.expect(
                "from-dlpack-dtype",
                seen is None,
                f"is read as {seen!r:.60}",
                "compare code, bits and lanes with the types that you have; else raise BufferError",
            )


def _read_if_plain(consumer: Consumer, result: Any) -> list[Any] | None:
    """The values if they are two plain numbers."""
    try:
        values = consumer.read(result)
    except Exception:  # a type that has no values in Python
        return None
    plain = isinstance(values, list) and len(values) == 2
    plain = plain and all(isinstance(value, int | float) for value in values)
    return values if plain else None


def _strides(consumer: Consumer, to: Recorder) -> None:
    """Memory order is 1, 2, 3..."""
    layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[int], int]] = {
        "columns first": ((2, 3), (1, 2), [1, 3, 5, 2, 4, 6], 6),
        "gaps": ((3,), (2,), [1, 3, 5], 6),
        "gaps between rows": ((2, 2), (3, 1), [1, 2, 4, 5], 6),
        "broadcast": ((2, 3), (0, 1), [1, 2, 3, 1, 2, 3], 3),
        "extent 1 with an odd stride": ((1, 3), (77, 1), [1, 2, 3], 3),
    }
    for name, (shape, strides, values, count) in layouts.items():
        with to.trying(name):
            held = range(1, count + 1)
            producer = made_for(consumer, "float32", shape, values=held, strides=strides)
            _compare(consumer, to, "from-dlpack-strides", producer, values, shape, must=False)


def _null_strides(consumer: Consumer, to: Recorder) -> None:
    version = {"version": (1, 1)} if not consumer.legacy else {}
    producer = made_for(consumer, "float32", (2, 3), strides=None, **version)
    values = expected("float32", 6)
    _compare(consumer, to, "from-dlpack-null-strides", producer, values, (2, 3), must=True)


def _byte_offset(consumer: Consumer, to: Recorder) -> None:
    producer = made_for(consumer, "float32", (2,), values=[7, 8, 9, 10], byte_offset=8)
    _compare(consumer, to, "from-dlpack-byte-offset", producer, [9, 10], (2,), must=False)


def _empties(consumer: Consumer, to: Recorder) -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        with to.trying(f"shape {shape}"):
            producer = made_for(consumer, "float32", shape)
            _compare(consumer, to, "from-dlpack-empty", producer, [], shape, must=True)


def _zero_dim(consumer: Consumer, to: Recorder) -> None:
    for name in ("shape (), empty arrays", "shape (), NULL"):
        with to.trying(name):
            producer = made_for(consumer, "float32", ())
            if name.endswith("NULL"):
                producer.made.tensor.shape = type(producer.made.tensor.shape)()
                producer.made.tensor.strides = type(producer.made.tensor.strides)()
            _compare(consumer, to, "from-dlpack-zero-dim", producer, [1], (), must=False)


def _alignment(consumer: Consumer, to: Recorder) -> None:
    for shift in (4, 1):
        with to.trying(f"an address with {shift} bytes too many"):
            producer = made_for(consumer, "float32", (5,), shift=shift)
            values = expected("float32", 5)
            _compare(consumer, to, "from-dlpack-alignment", producer, values, (5,), must=False)


CASES = (
    Case("types", "from-dlpack-reads", _dtypes),
    Case("other types", "from-dlpack-dtype", _odd_dtypes),
    Case("strides", "from-dlpack-strides", _strides),
    Case("NULL strides", "from-dlpack-null-strides", _null_strides),
    Case("byte_offset", "from-dlpack-byte-offset", _byte_offset),
    Case("no elements", "from-dlpack-empty", _empties),
    Case("no dimensions", "from-dlpack-zero-dim", _zero_dim),
    Case("alignment", "from-dlpack-alignment", _alignment),
)
