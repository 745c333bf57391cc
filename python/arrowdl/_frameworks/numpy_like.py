"""What frameworks with NumPy's functions and without ragged arrays share."""

from __future__ import annotations

from typing import Any


def make_operations(xp: Any) -> dict[str, Any]:
    """Return the operations of a `Framework` for a module with NumPy's functions, by name."""

    def unpack_bits(packed: Any, offset: int, length: int, repeat: int) -> Any:
        bits = packed[:, None] >> xp.arange(8, dtype=xp.uint8) & 1
        rows = xp.reshape(bits != 0, (-1,))[offset : offset + length]
        return xp.reshape(xp.broadcast_to(rows[:, None], (length, repeat)), (-1,))

    def fill(values: Any, valid: Any, item: float) -> Any:
        part = complex(item, item) if values.dtype.kind == "c" else item
        return xp.where(valid, values, xp.asarray(part, dtype=values.dtype))

    return {
        "unpack_bits": unpack_bits,
        "fill": fill,
        "all_valid": lambda values: xp.ones(values.shape, dtype=bool),
        "copy": lambda values: xp.array(values, copy=True),
        "arrange": lambda values, shape, axes: xp.permute_dims(xp.reshape(values, shape), axes),
    }


def advise_bytes(framework: str) -> str:
    """Return how to read values of a type that a framework lacks, for an error message."""
    return (
        f"read its bytes, as in to_{framework}(pyarrow.array(array)): pass the `values` of lists "
        'and the fields of structs, and copy with .to("cpu") from a device'
    )


def make_jagged(values: Any, offsets: Any) -> tuple[Any, Any]:
    """Return the pair (values, offsets)."""
    return values, offsets


def make_variable(
    values: Any, offsets: Any, shapes: Any, permutation: list[int]
) -> tuple[Any, Any, Any]:
    """Return (values, offsets, shapes); BufferError if the rows are permuted."""
    if permutation:
        raise BufferError(
            "a permuted variable_shape_tensor has no reading as (values, offsets, shapes), which "
            'are in the order of memory: use to_torch(), or take its fields "data" and "shape" for '
            "what they are"
        )
    return values, offsets, shapes
